import type { Gap } from "../contract/index.js";
import type { Harness, Readability, RequiredPath, SandboxBackend } from "../plugin/index.js";
import { callPure } from "./plugin-call.js";
import { pluginReturns } from "./plugin-returns.js";
import type { BoundedRequest } from "./requirements.js";

/** The host's files that an agent needs in a backend's sandboxes. @throws PluginBrokeContract */
export function requiredPathsOf(
  harness: Harness,
  { rootfs = "host" }: SandboxBackend,
): readonly RequiredPath[] {
  return callPure(harness, "requiredPaths", pluginReturns.requiredPaths, () => harness.requiredPaths(rootfs));
}

/** Whether programs in a backend's sandboxes could read them. Pure. @throws PluginBrokeContract */
export function readabilityIn(sandbox: SandboxBackend, harness: Harness): Readability {
  if (sandbox.reads === undefined) return true;
  const paths = requiredPathsOf(harness, sandbox);
  return callPure(sandbox, "reads", pluginReturns.readability, () => sandbox.reads?.(paths));
}

/** The gap of a boundary under which the agent couldn't read its own files. Pure. */
export function unreadableGaps(
  { required: [first] }: Pick<BoundedRequest, "required">,
  harness: Harness | undefined,
  sandbox: SandboxBackend | undefined,
): readonly Gap[] {
  if (first === undefined || harness === undefined || sandbox === undefined) return [];
  const readability = readabilityIn(sandbox, harness);
  if (readability === true) return [];
  const { capability, because } = first;
  return [{ actor: sandbox.name, capability, ...readability, requiredBy: because }];
}
