import type { Issue, RunRequest } from "../contract/index.js";
import type { Harness, ModelGateway, ModelUse } from "../plugin/index.js";
import { asked } from "./asked.js";
import type { Probed } from "./candidates.js";

/** A model gateway in the run, with what it carries. Holds credentials: never logged, never answered. */
export interface PlannedGateway {
  readonly probed: Probed<ModelGateway>;
  readonly use: ModelUse;
}

export interface GatewayChoice {
  readonly chosen: PlannedGateway | undefined;
  /** Why none carries the agent's model; undefined when one does, or the agent has no model that could be carried. */
  readonly why: string | undefined;
}

/** The first configured gateway that carries what the agent needs of its model. Pure. */
export function chooseGateway(
  request: RunRequest,
  harness: Harness | undefined,
  gateways: readonly Probed<ModelGateway>[],
): GatewayChoice {
  const use = harness === undefined ? undefined : asked(harness, "model", () => harness.model?.(request));
  if (use === undefined) return { chosen: undefined, why: undefined };
  const found: Issue[] = [];
  for (const probed of gateways) {
    const { actor } = probed;
    const issues = asked(actor, "issues", () => actor.issues(use));
    if (issues.length === 0) return { chosen: { probed, use }, why: undefined };
    found.push(...issues);
  }
  const why =
    found.length === 0
      ? "no model gateway is loaded"
      : found.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; ");
  return { chosen: undefined, why };
}

/** Names of the credentials that the gateway keeps outside the sandbox. */
export function carriedBy(gateway: PlannedGateway | undefined): readonly string[] {
  return Object.keys(gateway?.use.credentials ?? {});
}
