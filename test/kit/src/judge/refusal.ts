import { type Decoys, demandFor, requestFor } from "@ambit/attacks";
import { boundedRequest, normaliseBoundary, planRun } from "@ambit/core";
import {
  type Capability,
  domains,
  type Finding,
  type Harness,
  type SandboxBackend,
  type SandboxSpec,
} from "@ambit/core/plugin";
import { KitScope, silentLog } from "../stage/kit-scope.js";
import { freshId } from "../stage/stage.js";

/** Whether the planner refuses a run that requires the capability of this backend, with a reason. */
export function planRefuses(
  backend: SandboxBackend,
  findings: readonly Finding[],
  capability: Capability,
  decoys: Decoys,
): boolean {
  const request = requestFor(capability, backend.claims, decoys);
  const { boundary } = normaliseBoundary(request.sandboxPermission, request.ports);
  const probedAt = new Date().toISOString();
  const claimed = findings.filter((finding) => backend.claims.includes(finding.capability));
  const plan = planRun(boundedRequest(request, boundary), {
    sandboxes: [{ actor: backend, findings: new Map(claimed.map((one) => [one.capability, one])), probedAt }],
    harnesses: [{ actor: harness, findings: new Map(), probedAt }],
    executors: [],
    deliveries: [],
    gateways: [],
    toolSources: [],
  });
  return (
    !plan.accepted && plan.gaps.some((gap) => gap.actor === backend.name && gap.capability === capability)
  );
}

/** Acts only in the sandbox, so that every gap of the plan is the sandbox's. */
const harness: Harness = {
  name: "kit",
  id: "kit",
  aliases: [],
  site: "sandbox",
  claims: [],
  touches: () => domains,
  gaps: () => [],
  issues: () => [],
  visibleCredentials: () => [],
  supportsPermissionRequests: true,
  maxToolCallMs: 60_000,
  requiredPaths: () => [],
  probe: async () => [],
  start: () => Promise.reject(new Error("the kit's harness is only planned, never started")),
};

/** Whether it opens a sandbox that requires the capability. */
export async function opens(
  backend: SandboxBackend,
  capability: Capability,
  decoys: Decoys,
): Promise<boolean> {
  const scope = new KitScope();
  const { boundary, required } = demandFor(capability, backend.claims, decoys);
  // Other requirements of the boundary may be missing too: only this one is required, so that only it can be refused.
  const others = required.filter((one) => one === capability || backend.claims.includes(one));
  const spec: SandboxSpec = {
    id: freshId(),
    boundary,
    required: others,
    requiredPaths: [],
    onDecision: () => undefined,
    log: silentLog,
  };
  try {
    const sandbox = await backend.open(spec, scope);
    await sandbox.close();
    return true;
  } catch {
    return false; // A refusal with any message.
  } finally {
    await scope.close();
  }
}
