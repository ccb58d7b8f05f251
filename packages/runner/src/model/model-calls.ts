import type { ConnectionDecision, ModelAdmission, ModelExchange } from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import { RunEvents } from "../events/run-events.js";
import type { ModelCaller } from "./model-routes.js";

/** A run's requests to its model, as its gateway tells of them. */
@injectable()
export class ModelCalls implements ModelCaller {
  constructor(@inject(RunEvents) readonly events: RunEvents) {}

  async admit(): Promise<ModelAdmission> {
    return { allowed: true };
  }

  begin(): ModelExchange {
    return { used: () => {}, ended: () => {} };
  }

  onDecision(decision: ConnectionDecision): void {
    this.events.decisions.record(decision);
  }
}
