/** For backends with remote sandboxes: a whole `Sandbox` over any pipe to a command. */

import type { Scope } from "@ambit/core/plugin";
import type { Guest, GuestOptions } from "./host/guest.js";
import type { RemoteSandbox, RemoteSandboxOptions } from "./host/remote-sandbox.js";

export type { GuestOptions } from "./host/guest.js";
export type {
  BridgeFacts,
  BridgeResumption,
  OwnPort,
  RemoteSandbox,
  RemoteSandboxOptions,
} from "./host/remote-sandbox.js";
export { type BridgeOptions, bridgeSchema } from "./options.js";
export { ownSystemOptions } from "./own-system.js";
export type {
  BinaryPipe,
  BinaryPlatform,
  DirectPipe,
  DirectPlatform,
  Pipe,
  RemotePlatform,
} from "./platform.js";

/**
 * A whole sandbox over a platform's pipe. Owns the platform's sandbox from now on: `close` destroys it, and so does a
 * failed opening. Loaded with the first one, so that a backend's configuration, and a server's start, don't need it.
 *
 * @throws SandboxFailed when the bridge can't be started, or `spec.required` holds `environment.per-tool` and users of
 * their own don't work there.
 */
export async function openRemoteSandbox(options: RemoteSandboxOptions, scope: Scope): Promise<RemoteSandbox> {
  const { openBridged } = await import("./host/open.js");
  return await openBridged(options, scope);
}

/**
 * The command that `openDirectPipe` gets for such a sandbox: for a platform whose sandboxes begin with it. It does nothing until
 * the bridge writes to it, which is once `openDirectPipe` has resolved.
 *
 * @throws SandboxFailed when the guest daemon wasn't bundled.
 */
export async function directCommandOf(options: GuestOptions): Promise<[string, ...string[]]> {
  const { directCommand, guestOf } = await import("./host/guest.js");
  return directCommand(options.bridge.node, await guestOf(options));
}

/**
 * The program that such a sandbox's guest daemon is, for a platform that can put it there while the sandbox starts. `upload` is
 * called for it all the same.
 *
 * @throws SandboxFailed when it wasn't bundled.
 */
export async function guestProgramOf(options: GuestOptions): Promise<Guest["program"]> {
  const { guestOf } = await import("./host/guest.js");
  return (await guestOf(options)).program;
}
