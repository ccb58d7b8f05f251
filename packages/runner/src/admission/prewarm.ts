import { normaliseBoundary, type Registry } from "@ambit/core";
import type { Issue } from "@ambit/core/contract";
import type { Dialect, Harness, Prewarm } from "@ambit/core/plugin";
import type { PermissionCeiling } from "../operator.js";
import { type ContractSettings, parseRunRequest } from "../parse/parse.js";
import { ownPublication } from "../session/agent/publish.js";
import type { AskedStart } from "../session/pool/pooled-agent.js";
import type { AdmittedRun } from "./admission.js";

export function harnessesOf(registry: Registry): readonly Harness[] {
  return registry.knownCandidates().harnesses.map(({ actor }) => actor);
}

/** The deployer's part of a request as a whole request that belongs to no caller. Pure. */
export function prewarmBody({ id }: Pick<Harness, "id">, { request }: Pick<Prewarm, "request">): object {
  return { ...request, harness: id, messages: [{ role: "user", content: "none yet" }] };
}

/** The start of an agent that no run has asked for yet. Pure. */
export function prewarmedStart(
  { request, plan }: Pick<AdmittedRun, "request" | "plan">,
  { tools }: Pick<Prewarm, "tools">,
  ceiling: PermissionCeiling,
): AskedStart {
  const deniesTools = ceiling === true || ceiling.length > 0;
  return { request, plan, deniesTools, serverNames: tools ? [ownPublication] : [] };
}

/** What is wrong with the requests that a deployer wants agents started ahead for; empty if nothing is. */
export function prewarmIssues(registry: Registry, contract?: ContractSettings): readonly Issue[] {
  const { dialects } = registry;
  return harnessesOf(registry).flatMap((harness) =>
    (harness.prewarm ?? []).flatMap((prewarm, index) =>
      issuesOf(prewarmBody(harness, prewarm), dialects, contract).map(({ path, message }) => ({
        path: `prewarm.${harness.id}[${index}].request${path === "" ? "" : `.${path}`}`,
        message,
      })),
    ),
  );
}

function issuesOf(body: object, dialects: readonly Dialect[], contract?: ContractSettings): readonly Issue[] {
  const parsed = parseRunRequest(body, contract, dialects);
  if (!parsed.ok) return parsed.issues;
  const { boundary, issues } = normaliseBoundary(parsed.request.sandboxPermission);
  if (issues.length > 0 || boundary.network.mode !== "on") return issues;
  const message =
    'must be "off" or an allowlist: the network of an agent that belongs to no run yet is closed, and an open one can\'t be';
  return [{ path: "sandboxPermission.network", message }];
}
