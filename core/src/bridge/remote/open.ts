import { join } from "node:path/posix";
import { SandboxFailed } from "../../errors.js";
import type { Evidence, Sandbox, SandboxSpec, Scope } from "../../plugin/index.js";
import type { BridgeOptions } from "../options.js";
import type { RemotePlatform } from "../platform.js";
import { done, insideFacts } from "./answers.js";
import { ask } from "./ask.js";
import { type Bridge, closeBridge, makeBridge } from "./bridge.js";
import { archiveOf } from "./copies.js";
import { packedProgram } from "./pack-program.js";
import { BridgedSandbox } from "./sandbox.js";

export interface RemoteSandboxOptions {
  readonly platform: RemotePlatform;
  readonly spec: SandboxSpec;
  readonly bridge: BridgeOptions;
  /** What the backend saw of the sandbox itself: limits that were read back, its supervisor. Joined with the bridge's. */
  readonly evidence: Evidence;
  /**
   * Whether the sandbox's `/proc` is mounted for it alone, so that the bridge, where it is root, may mount it anew with
   * `hidepid=2`. On a shared one that would change the host. Default false.
   */
  readonly ownProc?: boolean;
}

/** What the bridge's half inside says of itself. The sandbox says it: never a proof by itself. */
export interface BridgeFacts {
  /** Whether each process gets a user of its own, and none sees another's processes: `environment.per-tool`. */
  readonly ownUsers: boolean;
  /** Why not, when it doesn't. */
  readonly whyShared: string | undefined;
  readonly searchPath: string;
  /** Version of Node.js inside. */
  readonly node: string;
}

export interface RemoteSandbox extends Sandbox {
  readonly facts: BridgeFacts;
}

/**
 * A whole sandbox over a platform's pipe. Owns the platform's sandbox from now on: `close` destroys it, and so does a
 * failed opening.
 *
 * @throws SandboxFailed when the bridge can't be started, or `spec.required` holds `environment.per-tool` and users of
 * their own don't work there.
 */
export async function openRemoteSandbox(options: RemoteSandboxOptions, scope: Scope): Promise<RemoteSandbox> {
  const { platform, spec } = options;
  const folder = join(options.bridge.folder, spec.id);
  const bridge = makeBridge(options, folder, programName);
  try {
    await bringFiles(options, folder, scope.signal);
    await bridge.connection.open(scope.signal);
    return await settleIn(options, folder, bridge);
  } catch (error) {
    await closeBridge(bridge);
    await platform.destroy();
    throw error;
  }
}

const programName = "bridge.mjs";
const archiveName = "copies.tgz";

async function bringFiles(
  { platform, spec, bridge }: RemoteSandboxOptions,
  folder: string,
  signal: AbortSignal,
): Promise<void> {
  const program = Buffer.from(await packedProgram(), "utf8");
  await platform.upload(join(folder, programName), program, signal);
  if (spec.runtimes.length === 0) return;
  const archive = await archiveOf(spec.runtimes, bridge.copyBytes);
  await platform.upload(join(folder, archiveName), archive, signal);
}

async function settleIn(
  { platform, spec, evidence }: RemoteSandboxOptions,
  folder: string,
  bridge: Bridge,
): Promise<RemoteSandbox> {
  const { answer } = await ask(bridge.channels, "facts", {}, insideFacts);
  const { workspace, home, searchPath, node, uid, ownUsers, whyShared } = answer;
  if (spec.required.includes("environment.per-tool") && !ownUsers) {
    throw new SandboxFailed(
      `environment.per-tool can't be had in this sandbox: ${whyShared ?? "no reason given"}`,
    );
  }
  const copies = join(folder, "copies");
  if (spec.runtimes.length > 0) {
    await ask(bridge.channels, "unpack", { archive: join(folder, archiveName), into: copies }, done);
  }
  return new BridgedSandbox({
    id: spec.id,
    workspace,
    home,
    evidence: { ...evidence, uid, "bridge.ownUsers": ownUsers, "bridge.node": node },
    image: { searchPath, copies },
    facts: { ownUsers, whyShared, searchPath, node },
    bridge,
    destroy: () => platform.destroy(),
  });
}
