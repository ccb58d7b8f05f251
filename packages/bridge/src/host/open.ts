import { join } from "node:path/posix";
import type { Scope } from "@ambit/core/plugin";
import { SandboxFailed } from "@ambit/core/plugin";
import { foldersOf } from "../folders.js";
import { ask } from "./ask.js";
import { awaitUnlessAborted } from "./await-unless-aborted.js";
import { type Bridge, closeBridge, leaveBridge, makeBridge } from "./bridge.js";
import { archiveOf } from "./copies.js";
import { guestOf, programName } from "./guest.js";
import type { RemoteSandbox, RemoteSandboxOptions } from "./remote-sandbox.js";
import { done, insideFacts } from "./replies.js";
import { BridgedSandbox } from "./sandbox.js";

/** `openRemoteSandbox`. */
export async function openBridged(options: RemoteSandboxOptions, scope: Scope): Promise<RemoteSandbox> {
  const { platform } = options;
  const guest = await guestOf(options);
  const { folder, program } = guest;
  const bridge = makeBridge(options, guest);
  try {
    if (platform.ready !== undefined) await awaitUnlessAborted(scope.signal, platform.ready(scope.signal));
    await uploadFiles(options, folder, program.content, scope.signal);
    await bridge.connection.open(scope.signal);
    return await awaitUnlessAborted(scope.signal, prepareSandbox(options, folder, bridge));
  } catch (error) {
    // The backend removes a sandbox that can't be continued.
    if (options.takeover?.resume !== undefined) {
      await leaveBridge(bridge);
      throw error;
    }
    try {
      await closeBridge(bridge);
    } finally {
      await platform.destroy();
    }
    throw error;
  }
}

const archiveName = "copies.tgz";

async function uploadFiles(
  options: RemoteSandboxOptions,
  folder: string,
  program: Uint8Array,
  signal: AbortSignal,
): Promise<void> {
  const { platform, spec, bridge } = options;
  const upload = (name: string, content: Uint8Array) =>
    awaitUnlessAborted(signal, platform.upload(join(folder, name), content, signal));
  // A direct pipe begins with it, and so does a first one.
  const isCarried =
    "openDirectPipe" in platform || "firstPipe" in platform || options.takeover?.resume !== undefined;
  if (!isCarried) await upload(programName, program);
  if (needsCopies(options) && !("firstPipe" in platform))
    await upload(archiveName, await archiveOf(spec.requiredPaths, bridge.copyBytes));
}

/** Over a first pipe, which is there already; elsewhere they were uploaded. */
async function unpackCopies(
  options: RemoteSandboxOptions,
  folder: string,
  into: string,
  { channels }: Bridge,
): Promise<void> {
  if (!needsCopies(options)) return;
  const { platform, spec, bridge } = options;
  if ("firstPipe" in platform)
    await ask(channels, "unpack", { into }, done, await archiveOf(spec.requiredPaths, bridge.copyBytes));
  else await ask(channels, "unpack", { archive: join(folder, archiveName), into }, done);
}

/** Whether the runner's files still have to be copied into the sandbox. */
function needsCopies({ spec, copyRoot, takeover }: RemoteSandboxOptions): boolean {
  const copied = new Set(takeover?.resume?.copied);
  return copyRoot === undefined && spec.requiredPaths.some(({ path }) => !copied.has(path));
}

async function prepareSandbox(
  options: RemoteSandboxOptions,
  folder: string,
  bridge: Bridge,
): Promise<RemoteSandbox> {
  const { platform, spec, evidence, placeholders, copyRoot: given, environment, takeover } = options;
  const { workspace, home } = foldersOf(options);
  const copyRoot = given ?? join(folder, "copies");
  const [{ reply }] = await Promise.all([
    ask(bridge.channels, "facts", {}, insideFacts),
    unpackCopies(options, folder, copyRoot, bridge),
  ]);
  const { searchPath, node, uid, ownUsers, whyShared, openPorts, whyOpen, closedBy } = reply;
  if (spec.required.includes("environment.per-tool") && !ownUsers) {
    throw new SandboxFailed(
      `environment.per-tool isn't possible in this sandbox: ${whyShared ?? "no reason given"}`,
    );
  }
  return new BridgedSandbox({
    id: spec.id,
    workspace,
    home,
    evidence: () => ({
      ...(typeof evidence === "function" ? evidence() : evidence),
      uid,
      "bridge.ownUsers": ownUsers,
      "bridge.node": node,
    }),
    image: {
      ...(options.imageName === undefined ? {} : { name: options.imageName }),
      searchPath,
      copyRoot,
      mounted: given !== undefined,
    },
    placeholders: placeholders ?? (() => ({})),
    facts: { ownUsers, whyShared, openPorts, whyOpen, closedBy, searchPath, node },
    bridge,
    copied: takeover === undefined ? undefined : spec.requiredPaths.map(({ path }) => path),
    isClosedUnclaimed: options.isClosedUnclaimed === true,
    letsRunnerIn: options.inbound !== undefined,
    environment: environment ?? (() => ({})),
    destroy: () => platform.destroy(),
  });
}
