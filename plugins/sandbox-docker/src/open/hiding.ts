import type { Container } from "./container.js";

/**
 * How a user inside is kept from seeing the processes of others: /proc is mounted with `hidepid`, which takes a right
 * that nothing of a run may have.
 * - `exec`: one command that the engine starts with all rights, in a container that has none of them.
 * - `drop`: the container has the right, and each command of ours gives it up for good before it does anything else. For
 *   engines that haven't all rights themselves, such as one in a virtual machine or a container.
 */
export type Hiding = "exec" | "drop";

const remount = "mount -o remount,hidepid=2,gid=0 /proc";
/** To remount, and to take a right away from all that follows. */
export const hidingRights = ["SYS_ADMIN", "SETPCAP"];
const dropRights = ["setpriv", "--bounding-set=-sys_admin,-setpcap", "--"];

/** A container's first command, which does nothing. */
export function firstCommand(command: readonly string[], hiding: Hiding): string[] {
  return hiding === "drop" ? [...dropRights, ...command] : [...command];
}

/** The command that starts the guest daemon, or finds it. */
export function joiningCommand(command: readonly string[], hiding: Hiding): readonly string[] {
  if (hiding === "exec") return command;
  // Where it can't be remounted the guest daemon sees that, and says so.
  return ["/bin/sh", "-c", `${remount} 2> /dev/null; exec ${dropRights.join(" ")} "$@"`, "sh", ...command];
}

/** @returns why /proc can't be remounted by such a command; undefined where it was. */
export async function hideByExec(container: Container, signal: AbortSignal): Promise<string | undefined> {
  const { code, output } = await container.run(remount.split(" "), signal, { Privileged: true });
  return code === 0 ? undefined : output;
}
