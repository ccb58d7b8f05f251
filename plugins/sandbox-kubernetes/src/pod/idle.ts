/** Seconds between two looks. */
export const pollSeconds = 3;

/**
 * The end of the script of a pod's first process, whose shell has `$idle` and `$step`, in seconds. It waits, and ends when no
 * other process of its user has run in the pod for `$idle`. `wait` reaps all ended processes: orphans become children of the
 * first one.
 */
export const waitUntilIdle = `trap 'exit 0' TERM
quiet=0
while [ "$quiet" -lt "$idle" ]; do
  sleep "$step" & wait $!
  quiet=$((quiet + step))
  for one in /proc/[0-9]*; do
    [ "$one" = /proc/1 ] || [ ! -O "$one" ] || quiet=0
  done
done`;

/** A script's argument. Never less than was asked for. */
export const wholeSeconds = (milliseconds: number): string => `${Math.ceil(milliseconds / 1_000)}`;
