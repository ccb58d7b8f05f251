import { type AmbitError, ModelFailed } from "@ambit/core";
import type { Usage } from "@ambit/core/contract";
import type { ConnectionDecision, ModelAdmission, ModelExchange, ModelFailure } from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import { Observation } from "../events/observation.js";
import { RunEvents } from "../events/run-events.js";
import { Budget } from "./budget.js";
import type { ModelCaller } from "./model-routes.js";

/** A run's requests to its model, as its gateway tells of them. */
@injectable()
export class ModelCalls implements ModelCaller {
  #answered = 0;
  #isCounted = false;
  /** Of the last request; undefined when that went well. */
  #failure: ModelFailure | undefined;

  constructor(
    @inject(RunEvents) readonly events: RunEvents,
    @inject(Budget) readonly budget: Budget,
    @inject(Observation) readonly observation: Observation,
  ) {}

  admit(_model: string, signal: AbortSignal): Promise<ModelAdmission> {
    return this.budget.admit(signal);
  }

  begin(model: string): ModelExchange {
    const observed = this.observation.modelCalled(model);
    return {
      used: (usage) => {
        this.#isCounted = true;
        observed.used(usage);
        this.budget.used(usage);
      },
      ended: (failure) => {
        this.budget.release();
        this.#failure = failure;
        if (failure === undefined) this.#answered += 1;
        observed.ended(failure);
      },
    };
  }

  onDecision(decision: ConnectionDecision): void {
    this.events.decisions.record(decision);
  }

  /** What the model's provider counted; undefined where no gateway did. */
  get usage(): Usage | undefined {
    return this.#isCounted ? this.budget.spent.usage : undefined;
  }

  /**
   * An agent may end its turn as if all were well when its model answered nothing but errors.
   * @throws ModelFailed with the last of them
   */
  requireAnswer(): void {
    if (this.#failure !== undefined && this.#answered === 0) throw asModelFailed(this.#failure);
  }

  /** What an agent's failure is about, where its gateway knows better: the request before it failed, and how. */
  explained(failure: AmbitError): AmbitError {
    const isModels =
      failure.code === "model_failed" || (failure.code === "harness_failed" && this.#answered === 0);
    return isModels && this.#failure !== undefined ? asModelFailed(this.#failure, failure) : failure;
  }
}

function asModelFailed({ message, retryable }: ModelFailure, cause?: unknown): ModelFailed {
  return new ModelFailed(`${message}.`, { retryable, ...(cause === undefined ? {} : { cause }) });
}
