import type { Issue, RunRequest } from "../contract/index.js";
import { issueLine } from "../errors.js";
import type { Harness, ModelGateway, ModelUse } from "../plugin/index.js";
import type { Probed } from "./candidates.js";
import { callPure } from "./plugin-call.js";
import { pluginReturns } from "./plugin-returns.js";

/** A model gateway in the run, with what it carries. Holds credentials: never log or return it. */
export interface PlannedGateway {
  readonly probed: Probed<ModelGateway>;
  readonly use: ModelUse;
}

export interface GatewayChoice {
  readonly chosen: PlannedGateway | undefined;
  /** Why no gateway carries the agent's model; undefined when one does, or the agent has no such model. */
  readonly why: string | undefined;
}

/** The first configured gateway that carries what the agent needs of its model. Pure. */
export function chooseGateway(
  request: RunRequest,
  harness: Harness | undefined,
  gateways: readonly Probed<ModelGateway>[],
): GatewayChoice {
  const use =
    harness?.model === undefined
      ? undefined
      : callPure(harness, "model", pluginReturns.modelUse, () => harness.model?.(request));
  if (use === undefined) return { chosen: undefined, why: undefined };
  const found: Issue[] = [];
  for (const probed of gateways) {
    const { actor } = probed;
    const issues = callPure(actor, "issues", pluginReturns.issues, () => actor.issues(use));
    if (issues.length === 0) return { chosen: { probed, use }, why: undefined };
    found.push(...issues);
  }
  const why = found.length === 0 ? "no model gateway is loaded" : found.map(issueLine).join("; ");
  return { chosen: undefined, why };
}

/** Why a budget can't be enforced: nothing counts what is used, or nothing has a price for it. Pure. */
export function budgetIssues({ budget }: RunRequest, { chosen, why }: GatewayChoice): readonly Issue[] {
  if (budget === undefined) return [];
  if (chosen === undefined) {
    const reason = why ?? "this agent's requests to a model go through no model gateway";
    const message = `can't be enforced: nothing counts what is used (${reason}): load @ambit/model-route and use an agent that it carries, or leave it out`;
    return [{ path: "budget", message }];
  }
  const paths = [
    ...(budget.usd === undefined ? [] : ["budget.usd"]),
    ...(budget.session?.usd === undefined ? [] : ["budget.session.usd"]),
  ];
  if (paths.length === 0) return [];
  const { actor } = chosen.probed;
  const unpriced = callPure(actor, "unpriced", pluginReturns.texts, () => actor.unpriced(chosen.use));
  if (unpriced.length === 0) return [];
  const message = `can't be enforced: ${actor.name} has no price for ${unpriced.join(", ")}: set prices in its configuration, or limit tokens`;
  return paths.map((path) => ({ path, message }));
}

/** Names of the credentials that the gateway keeps outside the sandbox. */
export function carriedBy(gateway: PlannedGateway | undefined): readonly string[] {
  return Object.keys(gateway?.use.credentials ?? {});
}
