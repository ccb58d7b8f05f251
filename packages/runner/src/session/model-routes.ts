import { type AcceptedPlan, callPlugin, outsideOffers, pluginReturns } from "@ambit/core";
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

/** Step 4: the route to the model. @returns undefined if the agent connects to its model directly, or has none. */
export async function openModelRoute(
  { gateway, boundary }: AcceptedPlan,
  log: Log,
  sandbox: Pick<Sandbox, "expose">,
  scope: Scope,
  router: ModelRouter,
): Promise<ModelRoute | undefined> {
  if (gateway === undefined) return undefined;
  const { actor } = gateway.probed;
  return await callPlugin(actor, "open", pluginReturns.modelRoute, () =>
    actor.open(gateway.use, {
      signal: scope.signal,
      defer: (close) => scope.defer(close),
      sandbox,
      boundary,
      log,
      admit: (model, signal, max) => outsideOffers(() => router.admit(model, signal, max)),
      begin: (model, max) => router.begin(model, max),
      onDecision: (decision) => outsideOffers(() => router.onDecision(decision)),
    }),
  );
}
