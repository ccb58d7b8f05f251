import { randomUUID } from "node:crypto";
import { type AcceptedPlan, type AmbitError, type AtCapacity, RunCancelled, toAmbitError } from "@ambit/core";
import { onDisconnectOf, type RunRequest, type StreamRecord } from "@ambit/core/contract";
import type { Admitted } from "./admission.js";
import { leavable, nextRecord } from "./events/reading.js";
import { RunEvents } from "./events/run-events.js";
import { requireOutput, streamTurn, tellEnd } from "./events/turn.js";
import { Warnings } from "./events/warnings.js";
import { Deadlines } from "./lifetime/deadlines.js";
import { logFailure } from "./lifetime/log-failure.js";
import { OwnedScope } from "./lifetime/scope.js";
import { conclude, stopReasonOf } from "./outcome.js";
import { Asking } from "./permission/interaction/asking.js";
import { announcement, contextOf, type RunContext } from "./run-context.js";
import type { RunOptions, RunServices } from "./run-services.js";
import {
  advance,
  endedWell,
  failureOf,
  progressOf,
  type RunStage,
  type RunState,
  sandboxOf,
  stageOf,
  startingIn,
  type TurnEnd,
} from "./run-state.js";
import { composePrompt, hasHistory } from "./session/prompt.js";
import { requireListed } from "./session/publish.js";
import { dismiss, startAgent } from "./session/start-agent.js";
import { fillWorkspace } from "./session/workspace-files.js";
import { prepareExecutors } from "./tools/execute.js";
import { ToolCalls } from "./tools/tool-calls.js";

/** One run of an admitted request: stops 3 to 7. Stops 1 and 2, parse and plan, are `admit`'s. */
export class Run {
  readonly id: string;
  readonly #scope: OwnedScope;
  readonly #deadlines: Deadlines;
  readonly #events: RunEvents;
  readonly #warnings: Warnings;
  readonly #asking: Asking;
  readonly #paused = new AbortController();
  #state: RunState = { name: "admitted" };
  #settle: (failure: AmbitError | undefined) => void = () => {};
  /** Resolves when everything the run opened is closed, with its failure if there was one. Never rejects. */
  readonly ended = new Promise<AmbitError | undefined>((resolve) => {
    this.#settle = resolve;
  });
  readonly request: RunRequest;
  readonly plan: AcceptedPlan;

  constructor(
    { request, plan, warnings }: Admitted,
    readonly services: RunServices,
    options: RunOptions,
  ) {
    this.request = request;
    this.plan = plan;
    this.id = request.runId ?? options.runId ?? randomUUID();
    this.#warnings = new Warnings(warnings);
    const { log, limits } = services;
    this.#scope = new OwnedScope(log, limits.closeMs);
    this.#deadlines = new Deadlines(this.#scope, limits);
    this.#events = new RunEvents(request, options, limits);
    const holdMs = Math.min(request.interactions?.holdMs ?? 0, plan.harness.actor.holdsCallsMs);
    this.#asking = new Asking(request, services, (event) => this.#events.emit(event), holdMs);
    // A run that is ended before it is read ends all the same.
    this.#scope.signal.addEventListener("abort", () => this.#begin(), { once: true });
  }

  /** How far it came: what its failure says of the host depends on that. */
  get stage(): RunStage {
    return stageOf(progressOf(this.#state));
  }

  /** Ends the run early; it still ends in its one result. */
  cancel(reason: RunCancelled | AtCapacity): void {
    this.#scope.abort(reason);
  }

  /**
   * The reader is gone: the run is cancelled, or goes on, as the request's `onDisconnect` says. What it tells from now
   * on is dropped, and slows the agent no longer.
   */
  leave(): void {
    if (onDisconnectOf(this.request) === "cancel")
      this.cancel(new RunCancelled("The client went away.", "caller"));
    this.#events.abandon();
  }

  /** About how many characters the run keeps. */
  get held(): number {
    return this.#events.held;
  }

  /** A live answer to what the run asks its user. @throws NotFound, RequestInvalid */
  answer(interactionId: string, body: unknown): void {
    this.#asking.interactions.answer(interactionId, body);
  }

  /**
   * Begins the run: the events as they happen, then exactly one result. For one reader; it may leave early by
   * `return()`, also while it waits for a record, and then waits only for a run that this cancels.
   */
  records(): AsyncGenerator<StreamRecord, void, undefined> {
    this.#begin();
    const next = nextRecord(this.#events, async () => {
      await this.ended;
      return this.#state.name === "ended" ? this.#state.result : undefined;
    });
    return leavable(next, async () => {
      this.leave();
      if (this.#scope.signal.aborted) await this.ended;
    });
  }

  #begin(): void {
    if (this.#state.name !== "admitted") return;
    this.#advance({ name: "opening" });
    void this.#live();
  }

  /** Never rejects: whatever throws, the run closes what it opened and ends in its one result. */
  async #live(): Promise<void> {
    const { request, plan, services } = this;
    let end = await this.#turn();
    const progress = progressOf(this.#state);
    this.#advance({ name: "closing", progress, end });
    // 7 close: everything opened, in reverse
    await this.#scope.close();
    this.#events.close(
      () => stopReasonOf(end),
      (thrown) => {
        end = this.#failed(thrown, end);
      },
    );
    const outcome = {
      ...{
        runId: this.id,
        events: this.#events,
        progress,
        failure: failureOf(end),
        warnings: this.#warnings,
      },
      sessionName: request.sessionId ?? this.#asking.turn,
    };
    const { result, failure } = conclude(request, plan, outcome, services.log);
    this.#advance({ name: "ended", progress, result });
    this.#settle(failure);
  }

  /** Stops 3 to 6, and what is told when the turn doesn't come to its own end. Never rejects. */
  async #turn(): Promise<TurnEnd> {
    let end: TurnEnd | undefined;
    try {
      const { permissionCeiling } = this.services;
      const toolCalls = new ToolCalls(this.#context(), permissionCeiling, this.#asking, () =>
        this.#paused.abort(),
      );
      end = await this.#drive(toolCalls).catch((thrown: unknown) => this.#failed(thrown));
      tellEnd(end, this.#events, toolCalls);
      return end;
    } catch (thrown) {
      return this.#failed(thrown, end);
    }
  }

  async #drive(toolCalls: ToolCalls): Promise<TurnEnd> {
    const { request, plan } = this;
    const run = this.#context();
    run.scope.signal.throwIfAborted();
    run.emit(announcement(run));
    for (const warning of await this.#asking.read()) run.warn(warning);

    // 3 open: the session's sandbox, and what the request puts into it
    const session = await this.#deadlines.starting("Opening the sandbox", async () => {
      const loan = await this.services.sessions.borrow(request, plan, {
        signal: run.scope.signal,
        decided: (decision) => this.#events.decisions.record(decision),
        failed: (failure) => run.scope.abort(failure),
      });
      run.scope.defer(() => loan.release(endedWell(this.#state) && !run.scope.unclean));
      this.#advance(startingIn(loan.session));
      run.scope.signal.throwIfAborted();
      this.#events.redactor.hide(loan.session.secrets);
      await fillWorkspace(run);
      return loan.session;
    });

    // 4 publish the tools, 5 start the agent: both, or the session's as an earlier run left them
    const { started, warm } = await this.#deadlines.starting("Starting the agent", () =>
      startAgent(run, session),
    );
    const { agent } = started;
    const remembers = warm || agent.history === "loaded";
    const history = warm ? "warm" : remembers ? "loaded" : hasHistory(request) ? "replayed" : "new";
    this.#advance({ name: "streaming", session, agent, history });
    session.conversation = { harness: plan.harness.actor.id, id: agent.conversation };
    toolCalls.serve(started.router, started.toolNames);
    let turnEnded = false;
    this.#scope.defer(async () => {
      started.router.current = undefined;
      // An agent that didn't end its turn can't be given another.
      if (!turnEnded) await dismiss(session, started);
    });
    prepareExecutors(run);

    // 6 stream: the turn's events, each completed with what only we know
    const stopReason = await streamTurn(run, {
      agent,
      prompt: composePrompt(request, remembers),
      toolCalls,
      ...{ events: this.#events, paused: this.#paused.signal },
    });
    turnEnded = true;
    if (this.#paused.signal.aborted) return { how: "paused" };
    requireListed(started.servers);
    requireOutput(this.#events.record, toolCalls, stopReason);
    return { how: "completed", stopReason };
  }

  #advance(next: RunState): void {
    this.#state = advance(this.#state, next);
  }

  /** @param before how the turn had ended already: a failure then is the story, and a later one broke while it was told. */
  #failed(thrown: unknown, before?: TurnEnd): TurnEnd {
    if (this.#paused.signal.aborted && !this.#scope.signal.aborted) {
      this.services.log.debug({ runId: this.id, error: thrown }, "the agent's turn ended with the pause");
      return before ?? { how: "paused" };
    }
    // Once the scope is aborted, its reason is the story; what broke because of it isn't.
    const failure = toAmbitError(this.#scope.signal.aborted ? this.#scope.signal.reason : thrown);
    logFailure(this.services.log, this.id, failure);
    return before?.how === "failed" ? before : { how: "failed", failure };
  }

  #context(): RunContext {
    return contextOf(this, {
      scope: this.#scope,
      deadlines: this.#deadlines,
      sandbox: () => sandboxOf(progressOf(this.#state)),
      emit: (event) => this.#events.emit(event),
      warn: (warning) => this.#warnings.add(warning),
    });
  }
}
