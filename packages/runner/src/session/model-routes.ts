import { type AcceptedPlan, outsideOffers, pluginReturns } from "@ambit/core";
import type {
  ConnectionDecision,
  Log,
  ModelAdmission,
  ModelExchange,
  ModelRoute,
  ModelUsage,
  Sandbox,
  Scope,
} from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import { callPlugin } from "../lifetime/plugin-error.js";
import { tokens } from "../tokens.js";

/** The run that has the agent: it decides on the agent's requests to its model, and gets their outcomes. */
export interface ModelCaller {
  admit(model: string, signal: AbortSignal, max?: ModelUsage): Promise<ModelAdmission>;
  begin(model: string, max?: ModelUsage): ModelExchange;
  onDecision(decision: ConnectionDecision): void;
}

/** Passes the requests of an agent's route to the run that has the agent now. Between runs, none is sent. */
export class ModelRouter implements ModelCaller {
  current: ModelCaller | undefined;

  async admit(model: string, signal: AbortSignal, max?: ModelUsage): Promise<ModelAdmission> {
    const { current } = this;
    if (current !== undefined) return await current.admit(model, signal, max);
    return { allowed: false, status: 403, reason: "no run is active" };
  }

  begin(model: string, max?: ModelUsage): ModelExchange {
    return this.current?.begin(model, max) ?? { used: () => {}, ended: () => {} };
  }

  onDecision(decision: ConnectionDecision): void {
    this.current?.onDecision(decision);
  }
}

/** Part of step 4: the route to the model. */
@injectable()
export class ModelRoutes {
  constructor(
    @inject(tokens.plan) private readonly plan: AcceptedPlan,
    @inject(tokens.log) private readonly log: Log,
  ) {}

  /** @returns undefined if the agent connects to its model directly, or has none. */
  async open(
    sandbox: Pick<Sandbox, "expose">,
    scope: Scope,
    router: ModelRouter,
  ): Promise<ModelRoute | undefined> {
    const { gateway } = this.plan;
    if (gateway === undefined) return undefined;
    const { actor } = gateway.probed;
    return await callPlugin(actor, "open", pluginReturns.modelRoute, () =>
      actor.open(gateway.use, {
        signal: scope.signal,
        defer: (close) => scope.defer(close),
        sandbox,
        boundary: this.plan.boundary,
        log: this.log,
        admit: (model, signal, max) => outsideOffers(() => router.admit(model, signal, max)),
        begin: (model, max) => router.begin(model, max),
        onDecision: (decision) => outsideOffers(() => router.onDecision(decision)),
      }),
    );
  }
}
