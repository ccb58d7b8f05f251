import { randomUUID } from "node:crypto";
import type { AcceptedPlan } from "@ambit/core";
import { type AmbitError, type AtCapacity, RunCancelled, toAmbitError } from "@ambit/core";
import type { Receipt, RunRequest, RunResult, StreamRecord } from "@ambit/core/contract";
import { onDisconnectOf } from "@ambit/core/contract";
import type { ActorKinds, Agent } from "@ambit/core/plugin";
import type { Admitted } from "./admission.js";
import { leavable, nextRecord } from "./events/reading.js";
import { RunEvents } from "./events/run-events.js";
import { requireOutput, streamTurn } from "./events/turn.js";
import { Warnings } from "./events/warnings.js";
import { Deadlines } from "./lifetime/deadlines.js";
import { logFailure } from "./lifetime/log-failure.js";
import { OwnedScope } from "./lifetime/scope.js";
import { cancelledByCaller, conclude, stopReasonOf } from "./outcome.js";
import { Asking } from "./permission/interaction/asking.js";
import { announcement, type RunContext, type RunStage } from "./run-context.js";
import type { RunOptions, RunServices } from "./run-services.js";
import { composePrompt, hasHistory } from "./session/prompt.js";
import { requireListed } from "./session/publish.js";
import type { Session } from "./session/session.js";
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
  #settle: (failure: AmbitError | undefined) => void = () => {};
  /** Resolves when everything the run opened is closed, with its failure if there was one. Never rejects. */
  readonly ended = new Promise<AmbitError | undefined>((resolve) => {
    this.#settle = resolve;
  });
  #begun = false;
  #session: Session | undefined;
  #agent: Agent | undefined;
  #history: Receipt["session"]["history"] = "new";
  #failure: AmbitError | undefined;
  #result: RunResult | undefined;
  /** The agent's own. */
  #stopReason: string | undefined;
  readonly request: RunRequest;
  readonly plan: AcceptedPlan<ActorKinds>;

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
    if (this.#agent !== undefined) return "started";
    return this.#session?.conversation === undefined ? "starting" : "reusing";
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
      return this.#result;
    });
    return leavable(next, async () => {
      this.leave();
      if (this.#scope.signal.aborted) await this.ended;
    });
  }

  #begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    void this.#live();
  }

  /** Never rejects: whatever throws, the run closes what it opened and ends in its one result. */
  async #live(): Promise<void> {
    const { request, plan, services } = this;
    await this.#turn().catch((thrown: unknown) => this.#fail(thrown));
    // 7 close: everything opened, in reverse
    await this.#scope.close();
    const end = { paused: this.#paused.signal.aborted, agents: this.#stopReason };
    const stopReason = () => stopReasonOf(this.#failure, end);
    this.#events.close(stopReason, (thrown) => this.#fail(thrown));
    const outcome = {
      ...{ runId: this.id, events: this.#events, history: this.#history, session: this.#session },
      ...{ agent: this.#agent, failure: this.#failure, warnings: this.#warnings },
      sessionName: request.sessionId ?? this.#asking.turn,
    };
    const { result, failure } = conclude(request, plan, outcome, services.log);
    this.#result = result;
    this.#settle(failure);
  }

  async #turn(): Promise<void> {
    const toolCalls = this.#toolCalls();
    await this.#drive(toolCalls).catch((thrown: unknown) => this.#fail(thrown));
    this.#tellEnd(toolCalls);
  }

  async #drive(toolCalls: ToolCalls): Promise<void> {
    const { request, plan } = this;
    const run = this.#context();
    run.scope.signal.throwIfAborted();
    run.emit(announcement(run));
    for (const warning of await this.#asking.read()) run.warn(warning);

    // 3 open: the session's sandbox, and what the request puts into it
    const session = await this.#deadlines.starting("Opening the sandbox", () => this.#open(run));

    // 4 publish the tools, 5 start the agent: both, or the session's as an earlier run left them
    const { started, warm } = await this.#deadlines.starting("Starting the agent", () =>
      startAgent(run, session),
    );
    const { agent } = started;
    this.#agent = agent;
    session.conversation = { harness: plan.harness.actor.id, id: agent.conversation };
    toolCalls.serve(started.router, started.toolNames);
    let turnEnded = false;
    this.#scope.defer(async () => {
      started.router.current = undefined;
      // An agent that didn't end its turn can't be given another.
      if (!turnEnded) await dismiss(session, started);
    });
    prepareExecutors(run);
    const remembers = warm || agent.history === "loaded";
    if (remembers) this.#history = warm ? "warm" : "loaded";
    else if (hasHistory(request)) this.#history = "replayed";

    // 6 stream: the turn's events, each completed with what only we know
    this.#stopReason = await streamTurn(run, {
      agent,
      prompt: composePrompt(request, remembers),
      toolCalls,
      ...{ events: this.#events, paused: this.#paused.signal },
    });
    turnEnded = true;
    if (this.#paused.signal.aborted) return;
    requireListed(started.servers);
    requireOutput(this.#events.record, toolCalls, this.#stopReason);
  }

  async #open(run: RunContext): Promise<Session> {
    const { session, release } = await this.services.sessions.borrow(run.request, run.plan, run.scope.signal);
    run.scope.defer(() => release(this.#failure === undefined && !run.scope.unclean));
    this.#session = session;
    this.#events.redactor.hide(session.secrets);
    session.onDecision = (decision) => this.#events.decisions.record(decision);
    session.onFailure = (failure) => this.#scope.abort(failure);
    if (session.failure !== undefined) throw session.failure;
    await fillWorkspace(run);
    return session;
  }

  #fail(thrown: unknown): void {
    if (this.#paused.signal.aborted && !this.#scope.signal.aborted) {
      this.services.log.debug({ runId: this.id, error: thrown }, "the agent's turn ended with the pause");
      return;
    }
    // Once the scope is aborted, its reason is the story; what broke because of it isn't.
    const error = toAmbitError(this.#scope.signal.aborted ? this.#scope.signal.reason : thrown);
    logFailure(this.services.log, this.id, error);
    // The first failure is the story: a later one broke while it was told.
    this.#failure ??= error;
  }

  /** What a turn that didn't come to its own end leaves to be told. */
  #tellEnd(toolCalls: ToolCalls): void {
    const isPaused = this.#paused.signal.aborted && this.#failure === undefined;
    if (!isPaused && this.#failure === undefined) return;
    this.#events.endBlocks();
    if (this.#failure !== undefined && !cancelledByCaller(this.#failure)) {
      for (const event of toolCalls.events.release()) this.#events.emit(event);
      this.#events.emit({ type: "error", message: this.#failure.message });
      return;
    }
    const why = isPaused ? "paused" : "interrupted";
    for (const event of toolCalls.events.settleOpen(why)) this.#events.emit(event);
  }

  #toolCalls(): ToolCalls {
    const ceiling = this.services.permissionCeiling;
    return new ToolCalls(this.#context(), ceiling, this.#asking, () => this.#paused.abort());
  }

  #context(): RunContext {
    return {
      ...this.services,
      runId: this.id,
      request: this.request,
      plan: this.plan,
      scope: this.#scope,
      deadlines: this.#deadlines,
      sandbox: () => {
        if (this.#session === undefined) throw new Error("The run's sandbox isn't open.");
        return this.#session.sandbox;
      },
      emit: (event) => this.#events.emit(event),
      warn: (warning) => this.#warnings.add(warning),
    };
  }
}
