import type { LoopbackSandboxView } from "../../interface.js";
import { sandboxAddress } from "../../runner/addresses.js";
import type { Sandbox } from "./sandbox.js";

/** The view of a sandbox for tests. */
export function sandboxView(sandbox: Sandbox): LoopbackSandboxView {
  const { blockAll, allowList, domains } = sandbox.applied;
  return {
    id: sandbox.id,
    name: sandbox.name,
    state: sandbox.state,
    labels: { ...sandbox.labels },
    snapshot: sandbox.snapshot,
    network: { blockAll, allowList: allowList ?? undefined, domains: domains ?? undefined },
    address: sandboxAddress(sandbox.index),
    pid: sandbox.pid,
    lastActivityAt: sandbox.lastActivityAt,
  };
}
