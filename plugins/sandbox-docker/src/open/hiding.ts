/**
 * How users inside are kept from seeing each other's processes: /proc is mounted with `hidepid`, which takes a
 * privilege that nothing in a run may have.
 * - `exec`: the engine starts one command with all privileges, in a container that has none of them.
 * - `drop`: the container has the privilege. Its first command mounts, and drops it before it does anything else.
 *   For engines that don't have all privileges themselves, such as one in a virtual machine or a container.
 * - `none`: the image lacks the programs for it. Then `environment.per-tool` isn't proven.
 */
type ProcessHiding = "exec" | "drop" | "none";

/** What the first sandboxes found out about an engine and its image. */
export interface EngineFacts {
  hiding: ProcessHiding;
  /** The image's own volumes, by path. */
  imageVolumes: readonly string[];
  /** Docker takes the system call filter itself, Podman the path of a file on its host. */
  readonly seccomp: string;
  /** Whether the engine repeats settings in the words they were asked in, as Docker does and Podman doesn't. */
  readonly isDocker: boolean;
  /** Whether containers have every user id. Where the engine maps them, such as without root, they have 65,536. */
  readonly hasAllUsers: boolean;
}

const hide = "mount -o remount,hidepid=2,gid=0 /proc";
/** All containers of a host have 3,072 terminals together (kernel.pty): one must not take them all. gVisor has its own. */
const limitTerminals = "mount -o remount,nosuid,noexec,gid=5,mode=620,ptmxmode=666,max=64 /dev/pts";
/** For a shell, which ends as the hiding does. */
export const remount = `${limitTerminals} 2> /dev/null; ${hide}`;
/** To remount, and to take a capability away from everything that follows. */
export const hidingRights = ["SYS_ADMIN", "SETPCAP"];
const dropRights = ["setpriv", "--bounding-set=-sys_admin,-setpcap", "--"];

/**
 * Reaps ended processes, since the first one inherits all orphans. It ends with a guest daemon that couldn't start or was killed. After
 * an orderly end it waits to be removed: an engine may fail to remove a container that is just ending.
 */
const init = [
  "/bin/sh",
  "-c",
  'exec 3<&0 < /dev/null; "$@" <&3 3<&- & exec 3<&-; wait $! || exit; while :; do sleep 2147483647 & wait $!; done',
  "sh",
];

/** A container's first command: the guest daemon, which waits for its program. */
export function firstCommand(guest: readonly string[], hiding: ProcessHiding): string[] {
  const command = [...init, ...guest];
  if (hiding !== "drop") return command;
  // Where it can't be remounted, the guest daemon notices and reports that.
  return ["/bin/sh", "-c", `${remount} 2> /dev/null; exec ${dropRights.join(" ")} "$@"`, "sh", ...command];
}

/**
 * Whether a container failed because its image may lack what drops the privilege: its shell says so, or only has the exit code of
 * a missing program, if its words didn't arrive in time.
 */
export const lacksDropping = (failure: Error) =>
  /\bsetpriv\b|\bexit code 127\b|\bsh: \d+: exec:/.test(failure.message);
