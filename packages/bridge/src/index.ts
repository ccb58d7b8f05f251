/** For backends with remote sandboxes: a whole `Sandbox` over any pipe to a command. */

import type { Scope } from "@ambit/core/plugin";
import type { GuestOptions, RemoteSandbox, RemoteSandboxOptions } from "./remote-sandbox.js";

export type {
  BinaryPipe,
  BinaryPlatform,
  BridgeFacts,
  BridgeResumption,
  DirectPipe,
  DirectPlatform,
  GuestOptions,
  OwnPort,
  Pipe,
  RemotePlatform,
  RemoteSandbox,
  RemoteSandboxOptions,
} from "./remote-sandbox.js";
export {
  type BridgeOptions,
  bridgeSchema,
  foldersOf,
  ownSystemOptions,
  type SessionFolders,
} from "./remote-sandbox.js";

/**
 * A whole sandbox over a platform's pipe. Owns the platform's sandbox from now on: `close` destroys it, and so does a
 * failed opening. Loaded with the first one, so that a backend's configuration, and a server's start, don't need it.
 *
 * @throws SandboxFailed when the bridge can't be started, or `spec.required` holds `environment.per-tool` and users of
 * their own don't work there.
 */
export async function openRemoteSandbox(options: RemoteSandboxOptions, scope: Scope): Promise<RemoteSandbox> {
  const { openBridged } = await import("./host/sandbox.js");
  return await openBridged(options, scope);
}

/**
 * A command that runs a CommonJS program which its standard input begins with: no file of it is in the sandbox. What follows in
 * its input is the program's.
 *
 * @param node Node.js inside: a name on its `PATH`, or a path.
 */
export async function commandFromInput(
  node: string,
  program: Uint8Array,
): Promise<readonly [string, ...string[]]> {
  const { nodeArgumentsFromInput } = await import("./host/bridge.js");
  return [node, ...nodeArgumentsFromInput(program), "/program.cjs"];
}

/**
 * The command that `openDirectPipe` gets for such a sandbox: for a platform whose sandboxes begin with it. It does nothing until
 * the bridge greets it, which is once `openDirectPipe` has resolved: with its input, it only loads the guest daemon. See `hasProgram`
 * of the platform.
 *
 * @throws SandboxFailed when the guest daemon wasn't bundled.
 */
export async function directCommandOf(options: GuestOptions): Promise<FirstCommand> {
  const { directCommand, guestOf } = await import("./host/bridge.js");
  const guest = await guestOf(options);
  return { argv: directCommand(options.bridge.node, guest), input: guest.program.content };
}

export interface FirstCommand {
  readonly argv: readonly [string, ...string[]];
  /** What its standard input begins with. */
  readonly input: Uint8Array;
}

/**
 * A command that starts the guest daemon and is the first pipe to it, for a platform of binary pipes that starts it as soon as the
 * sandbox can run one. It writes nothing before the bridge has written to it. See `firstPipe` of the platform.
 *
 * @throws SandboxFailed when the guest daemon wasn't bundled.
 */
export async function firstCommandOf(options: GuestOptions): Promise<FirstCommand> {
  const { firstCommand, guestOf } = await import("./host/bridge.js");
  const guest = await guestOf(options);
  return { argv: firstCommand(options.bridge.node, guest), input: guest.program.content };
}
