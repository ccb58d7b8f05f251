/**
 * How users inside are kept from seeing each other's processes: /proc is mounted with `hidepid`, which takes a
 * privilege that nothing in a run may have.
 * - `exec`: the engine starts one command with all privileges, in a container that has none of them.
 * - `drop`: the container has the privilege, and each of the plugin's commands drops it before it does anything else.
 *   For engines that don't have all privileges themselves, such as one in a virtual machine or a container.
 * - `none`: the image lacks the programs for it. Then `environment.per-tool` isn't proven.
 */
export type ProcessHiding = "exec" | "drop" | "none";

/** What the first sandboxes found out about an engine and its image. */
export interface EngineFacts {
  hiding: ProcessHiding;
  /** The image's own volumes, by path. */
  imageVolumes: readonly string[];
  /** Docker takes the system call filter itself, Podman the path of a file on its host. */
  readonly seccomp: string;
  /** Whether the engine repeats settings in the words they were asked in, as Docker does and Podman doesn't. */
  readonly isDocker: boolean;
}

export const remount = "mount -o remount,hidepid=2,gid=0 /proc";
/** To remount, and to take a capability away from everything that follows. */
export const hidingRights = ["SYS_ADMIN", "SETPCAP"];
const dropRights = ["setpriv", "--bounding-set=-sys_admin,-setpcap", "--"];

/** A container's first command, which does nothing. */
export function firstCommand(command: readonly string[], hiding: ProcessHiding): string[] {
  return hiding === "drop" ? [...dropRights, ...command] : [...command];
}

/** The command that starts the guest daemon, or finds the running one. */
export function joiningCommand(command: readonly string[], hiding: ProcessHiding): readonly string[] {
  if (hiding !== "drop") return command;
  // Where it can't be remounted, the guest daemon notices and reports that.
  return ["/bin/sh", "-c", `${remount} 2> /dev/null; exec ${dropRights.join(" ")} "$@"`, "sh", ...command];
}
