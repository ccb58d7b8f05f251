import { callPure, pluginReturns } from "@ambit/core";
import type { JsonObject, Permission, RunRequest, ToolSpec } from "@ambit/core/contract";
import type { RunToolPolicy, ToolDecision, ToolOutcome, ToolPolicy } from "@ambit/core/plugin";

/** What the loaded tool policies decide about calls of a request's own tools. The first one that governs a tool decides on it. */
export class ToolPolicies {
  readonly #policies: readonly { readonly offer: ToolPolicy; readonly policy: RunToolPolicy }[];

  /** @throws PluginBrokeContract, as every method does */
  constructor(offers: readonly ToolPolicy[], request: RunRequest) {
    this.#policies = offers.flatMap((offer) => {
      const policy = callPure(offer, "forRun", pluginReturns.toolPolicy, () => offer.forRun(request));
      return policy === undefined ? [] : [{ offer, policy }];
    });
  }

  /** The permission of a call; undefined for a tool that no policy governs, or while its arguments can't be read. */
  permission(tool: ToolSpec | undefined, input: unknown): Permission | undefined {
    const decision = this.#decide(tool, input);
    if (decision === undefined || decision.kind === "malformed") return undefined;
    return decision.kind === "denied" ? "deny" : decision.permission;
  }

  /** What is wrong with a call's arguments, for the model. */
  problem(tool: ToolSpec, input: unknown): string | undefined {
    const decision = this.#decide(tool, input);
    return decision?.kind === "malformed"
      ? `Tool '${tool.name}' can't be called: ${decision.problem}`
      : undefined;
  }

  /** The reason for which a policy denies a call; undefined where none does. */
  denial(tool: ToolSpec | undefined, input: unknown): string | undefined {
    const decision = this.#decide(tool, input);
    return decision?.kind === "denied" ? decision.reason : undefined;
  }

  /** What the user reads of a call besides its arguments. */
  details(tool: ToolSpec | undefined, input: unknown): JsonObject {
    const decision = this.#decide(tool, input);
    return decision?.kind === "permitted" ? decision.details : {};
  }

  /** What the executor gets besides the model's arguments. */
  context(tool: ToolSpec, input: unknown): JsonObject | undefined {
    const decision = this.#decide(tool, input);
    return decision?.kind === "permitted" ? decision.context : undefined;
  }

  /** What the model may read of an outcome. */
  readable(tool: ToolSpec, outcome: ToolOutcome): ToolOutcome {
    return this.#policies.reduce(
      (readable, { offer, policy }) =>
        callPure(offer, "readable", pluginReturns.outcome, () => policy.readable(tool, readable)),
      outcome,
    );
  }

  #decide(tool: ToolSpec | undefined, input: unknown): ToolDecision | undefined {
    if (tool === undefined) return undefined;
    for (const { offer, policy } of this.#policies) {
      const decision = callPure(offer, "decide", pluginReturns.toolDecision, () =>
        policy.decide(tool, input),
      );
      if (decision !== undefined) return decision;
    }
    return undefined;
  }
}
