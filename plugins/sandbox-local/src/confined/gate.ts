import { inside } from "./inside.js";

/** The descriptor over which the runner and a jail's first program talk; closed before the payload starts. */
export const gateDescriptor = 3;

export type Relay =
  | { readonly kind: "none" }
  | { readonly kind: "socat"; readonly program: string }
  | { readonly kind: "node"; readonly program: string };

/**
 * The jail's first program, and process number one of its pid namespace: what is left in the jail when the payload
 * ends, ends with it, and bubblewrap sees to its remains. (bubblewrap's own number one would outlive bubblewrap, for
 * a runner that is a container's first process and collects no strangers' children.)
 *
 * Its child says its own number in the jail (so that the runner can look at it while the relay starts), then that
 * all is up, and becomes the payload only when the runner says so. A runner that died meanwhile never does. The
 * runner then closes its end: the first process keeps a descriptor that leads nowhere.
 */
export function gateScript(relay: Relay): string {
  return [
    // The runner's mark, for the host's eyes only.
    "shift",
    'command -v -- "$1" >/dev/null || { echo missing >&3; exit 127; }',
    // A shell says so when its child ends by a signal; the payload's standard error is the payload's.
    "exec 4>&2 2>/dev/null",
    "(",
    "exec 2>&4 4>&-",
    "read -r _ambit _ambit_rest </proc/self/stat",
    'echo "$_ambit" >&3',
    ...(relay.kind === "none" ? [] : startRelay(relay)),
    "echo up >&3",
    "read -r _ambit <&3 || exit 125",
    "exec 3>&-",
    'exec "$@"',
    ")",
    "exit $?",
  ].join("\n");
}

function startRelay(relay: Exclude<Relay, { kind: "none" }>): string[] {
  // nodelay: the end of an answer that comes in two pieces would wait for the client's delayed ACK, 40 ms.
  const listen = `TCP4-LISTEN:${inside.port},bind=127.0.0.1,fork,reuseaddr,backlog=1024,nodelay`;
  const command =
    relay.kind === "socat"
      ? // -t: a client that has sent all may wait long for its answer.
        `${relay.program} -t 3600 ${listen} UNIX-CONNECT:${inside.channel}`
      : `${relay.program} ${inside.relayProgram}`;
  const portInHex = inside.port.toString(16).toUpperCase().padStart(4, "0");
  return [
    // In a shell of its own: the payload gets no child that it didn't start, and no variable of ours. Without the
    // payload's variables: what they make of a program is its own business.
    "(",
    `/usr/bin/env -i ${command} </dev/null >/dev/null 2>&1 3>&- &`,
    "tries=0",
    "while :; do",
    "  while read -r slot local remote state rest; do",
    `    case "$local $state" in "0100007F:${portInHex} 0A") exit 0;; esac`,
    "  done </proc/net/tcp",
    "  tries=$((tries + 1))",
    "  [ $tries -lt 100000 ] || exit 1",
    "done",
    ") || { echo relay >&3; exit 126; }",
  ];
}
