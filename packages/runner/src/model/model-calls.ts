import { type AmbitError, BoundaryRefused, gapLine, ModelFailed } from "@ambit/core";
import type { Gap, Usage } from "@ambit/core/contract";
import type {
  Agent,
  ConnectionDecision,
  ModelAdmission,
  ModelExchange,
  ModelFailure,
  ModelUsage,
} from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import { ApprovedCalls } from "../call/answer.js";
import { Ask } from "../call/ask.js";
import { RunEvents } from "../events/run-events.js";
import { type OwnedScope, RightToAct } from "../lifetime/scope.js";
import type { RunLimits } from "../limits.js";
import type { ModelCaller, ModelRouter } from "../session/publish.js";
import { type PlannedRun, tokens } from "../tokens.js";
import { RunBudget, SessionSpending } from "./budget.js";

/** Models that a failure's message lists at most. */
const maxListed = 50;

/** The outcomes of the requests so far. */
interface Tally {
  answered: number;
  /** The failure of the last request; undefined if it succeeded. */
  failure: ModelFailure | undefined;
  /** Failed requests since the last successful one. */
  inARow: number;
  /** Answers that ended before they were finished. */
  partial: number;
  /** Answers since the last other outcome that ended at the limit of their length. */
  atLimitInARow: number;
}

function emptyTally(): Tally {
  return { answered: 0, failure: undefined, inARow: 0, partial: 0, atLimitInARow: 0 };
}

/** The requests of a run to its model, as the gateway reports them. */
@injectable()
export class ModelCalls implements ModelCaller {
  #isCounted = false;
  /** Requests for the run's own model. */
  readonly #main = emptyTally();
  /** Those for models that the agent asks by itself, such as for a title: they may end in any order with the others. */
  readonly #auxiliary = emptyTally();

  readonly #budget: RunBudget;
  #agent: Agent | undefined;
  /**
   * What the gateway last refused because of the boundary; undefined once another request to the run's model has ended.
   */
  #refused: Gap | undefined;

  constructor(
    @inject(tokens.run) private readonly run: PlannedRun,
    @inject(RunEvents) private readonly events: RunEvents,
    @inject(tokens.limits) private readonly limits: RunLimits,
    @inject(tokens.scope) private readonly scope: OwnedScope,
    @inject(RightToAct) private readonly right: RightToAct,
    @inject(ApprovedCalls) private readonly approved: ApprovedCalls,
    @inject(SessionSpending) spending: SessionSpending,
    @inject(Ask) ask: Ask,
  ) {
    this.#budget = new RunBudget(run.request, scope, spending, ask);
  }

  /** From now on the agent's requests are this run's. */
  serve(router: ModelRouter, agent: Agent): void {
    this.#agent = agent;
    router.current = this;
  }

  async admit(_model: string, signal: AbortSignal, max?: ModelUsage): Promise<ModelAdmission> {
    await this.right.confirmed(signal);
    return this.#budget.admit(signal, max);
  }

  begin(model: string, max?: ModelUsage): ModelExchange {
    this.approved.modelAsked();
    const observed = this.events.observation.modelCalled(model);
    const ended = this.events.stages.askModel();
    const tally = model === this.run.plan.gateway?.use.model ? this.#main : this.#auxiliary;
    return {
      used: (usage) => {
        this.#isCounted = true;
        observed.used(usage);
        this.#budget.used(usage);
      },
      ended: (failure, stopReason) => {
        this.#budget.release(max);
        tally.failure = failure;
        tally.atLimitInARow = stopReason === "max_tokens" ? tally.atLimitInARow + 1 : 0;
        if (failure === undefined) tally.answered += 1;
        if (failure?.isPartial === true) tally.partial += 1;
        if (tally === this.#main) this.#refused = undefined;
        tally.inARow = failure === undefined ? 0 : tally.inARow + 1;
        ended();
        observed.ended(failure);
        // Some agents retry for more than a minute, without reporting it and without a setting for it.
        if (failure !== undefined && tally === this.#main && tally.inARow >= this.limits.modelFailures)
          this.scope.abort(asModelFailed(failure));
        // A model may be told to go on a few times; one that ends within a call's arguments begins again each time.
        if (tally === this.#main && tally.atLimitInARow >= 2 * this.limits.modelFailures)
          this.scope.abort(asModelFailed(alwaysAtLimit(tally.atLimitInARow)));
      },
    };
  }

  onDecision(decision: ConnectionDecision): void {
    this.events.decisions.record(decision);
    const actor = this.run.plan.gateway?.probed.actor.name;
    if (decision.gap === undefined || actor === undefined) return;
    const gap = { actor, ...decision.gap };
    this.#refused = gap;
    this.events.warn({ path: "sandboxPermission.network", message: gapLine(gap) });
  }

  /** What the model's provider counted; undefined without a gateway. */
  get usage(): Usage | undefined {
    return this.#isCounted ? this.#budget.spent.usage : undefined;
  }

  /**
   * An agent whose model returned only errors may end its turn without one.
   * @throws ModelFailed with the last of them, or BoundaryRefused where the gateway refused it
   */
  requireResponse(): void {
    if (this.#main.answered + this.#main.partial + this.#auxiliary.answered > 0) return;
    if (this.#refused !== undefined) throw new BoundaryRefused([this.#refused]);
    const failure = this.#failure();
    if (failure !== undefined) throw this.#modelFailed(failure);
  }

  /**
   * Why the turn ended: most agents don't tell that their model stopped at the limit of its answer's length.
   * @param reported what the agent says.
   */
  stopReason(reported: string | undefined): string | undefined {
    const isOrdinary = reported === undefined || reported === "end_turn";
    return isOrdinary && this.#main.atLimitInARow > 0 ? "max_tokens" : reported;
  }

  /** Whether an agent's failure is only that its model stopped at the limit of its answer's length. */
  isLimit({ code }: AmbitError): boolean {
    return code === "model_failed" && this.#main.atLimitInARow > 0;
  }

  /** A turn was completed: agents take a part of an answer for the whole, or show it once more. */
  warnOfPartial(): void {
    const { partial, answered } = this.#main;
    if (partial === 0) return;
    const count = `${partial} of ${partial + answered} answers of the model`;
    this.events.warn({
      path: "modelConnection",
      message: `${count} ended before ${partial === 1 ? "it was" : "they were"} finished: text of the agent may lack its end, or be there twice.`,
    });
  }

  /** An agent's failure with its real cause, where the gateway knows it: the last request to the model failed. */
  explained(failure: AmbitError): AmbitError {
    const isModels =
      failure.code === "model_failed" || (failure.code === "harness_failed" && this.#main.answered === 0);
    if (isModels && this.#refused !== undefined) return new BoundaryRefused([this.#refused]);
    const modelFailure = isModels ? this.#failure() : undefined;
    return modelFailure === undefined ? failure : this.#modelFailed(modelFailure, failure);
  }

  /** Adds the models that the agent lists, where the provider doesn't know the requested one. */
  #modelFailed(failure: ModelFailure, cause?: unknown): ModelFailed {
    const model = this.run.plan.gateway?.use.model ?? "";
    const others = (this.#agent?.models ?? []).filter((id) => id !== model && !id.endsWith(`/${model}`));
    if (failure.status !== 404 || others.length === 0) return asModelFailed(failure, cause);
    const listed = others.slice(0, maxListed).join(", ") + (others.length > maxListed ? ", …" : "");
    const message = `${failure.message}; the agent lists ${listed}`;
    return asModelFailed({ ...failure, message }, cause);
  }

  #failure(): ModelFailure | undefined {
    return this.#main.failure ?? this.#auxiliary.failure;
  }
}

function asModelFailed({ message, retryable, status }: ModelFailure, cause?: unknown): ModelFailed {
  return new ModelFailed(`${message}.`, { retryable, upstreamStatus: status, cause });
}

function alwaysAtLimit(count: number): ModelFailure {
  const fix = "raise that limit, or ask for smaller steps";
  return {
    retryable: false,
    message: `${count} answers of the model in a row ended at the limit of their length (max_tokens): ${fix}`,
  };
}
