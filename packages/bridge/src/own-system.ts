import type { Boundary, SandboxSpec } from "@ambit/core/plugin";
import type { GuestOptions } from "./host/guest.js";
import type { BridgeOptions } from "./options.js";

const workspaceAccess = {
  on: "write",
  workspace: "write",
  readonly: "read",
  off: "none",
} as const satisfies Readonly<Record<Boundary["filesystem"]["mode"], GuestOptions["workspace"]>>;

/**
 * The options of a sandbox that shares no file system, processes or users with another, such as a container or a pod: paths
 * inside are the same in each, so that what was prepared in one works in another. Pure.
 */
export function ownSystemOptions(
  { id, boundary }: Pick<SandboxSpec, "id" | "boundary">,
  bridge: BridgeOptions,
): GuestOptions {
  return {
    spec: { id },
    folderName: "session",
    bridge,
    ownSystem: true,
    unprivileged: true,
    workspace: workspaceAccess[boundary.filesystem.mode],
  };
}
