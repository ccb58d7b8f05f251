import {
  type AcceptedPlan,
  type AmbitError,
  type AtCapacity,
  cancelledByCaller,
  type PluginBrokeContract,
  RunCancelled,
  toAmbitError,
} from "@ambit/core";
import type { AgentEvent, ContentBlock, EventRecord, RunRequest, RunResult } from "@ambit/core/contract";
import type { LimitHits, Log } from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import { RunCalls } from "../call/run-calls.js";
import type { RunRecovery } from "../events/observation.js";
import { mark, unsearchableSecretsOf } from "../events/redaction.js";
import { type GatheringLimits, RunEvents } from "../events/run-events.js";
import { sizeOf, sizeOfScalar } from "../json-values.js";
import { Deadlines, type OwnedScope, RightToAct, type RunHold } from "../lifetime/scope.js";
import { composePrompt, forgotten, hasHistory, userMessagesAfter } from "../parse/messages.js";
import type { StartedAgent } from "../session/publish.js";
import { type Session, whyUnsound } from "../session/session.js";
import { type BorrowingRun, type Loan, Sessions } from "../session/sessions.js";
import { AgentStarter, dismiss, limitsHint, memoryWarning } from "../session/start-agent.js";
import { type PlannedRun, tokens } from "../tokens.js";
import { AgentTurn } from "./agent-turn.js";
import {
  advanceRun,
  agentAfterTurn,
  conclude,
  endingOf,
  failureOf,
  progressOf,
  type RunStage,
  type RunState,
  stageOf,
  startingIn,
  stopReasonOf,
  type TurnEnd,
} from "./run-state.js";
import { fillWorkspace, RunWorkspace } from "./workspace.js";

/** Characters of a request that is kept, and of each text in one that has more: images and files may have megabytes. */
const maxCopyCharacters = 1_048_576;
const maxTextOfLarge = 65_536;

/** Some events of a run, or its one result. */
export type RunPart = { readonly records: readonly EventRecord[] } | { readonly result: RunResult };

/** One run of an admitted request: steps 3 to 7. Steps 1 and 2, parse and plan, are `admit`'s. */
@injectable()
export class Run {
  #state: RunState = { name: "admitted" };
  /** Milliseconds since 1970. */
  readonly begunAt = Date.now();
  readonly #settled = Promise.withResolvers<AmbitError | undefined>();
  /** Resolves when everything the run opened is closed, with its failure if there was one. Never rejects. */
  readonly ended = this.#settled.promise;
  readonly id: string;
  /** Names it among the runs of all callers. */
  readonly key: string;
  readonly request: RunRequest;
  readonly plan: AcceptedPlan;
  readonly #secrets: readonly string[];
  /** How often the session's limits were reached before this run. */
  #limitHitsBefore: LimitHits | undefined;

  constructor(
    @inject(tokens.run) { id, key, request, plan, secrets }: PlannedRun,
    @inject(tokens.log) readonly log: Log,
    @inject(tokens.scope) private readonly scope: OwnedScope,
    @inject(Deadlines) private readonly deadlines: Deadlines,
    @inject(RightToAct) private readonly right: RightToAct,
    @inject(RunEvents) private readonly events: RunEvents,
    @inject(Sessions) private readonly sessions: Sessions,
    @inject(AgentStarter) private readonly agents: AgentStarter,
    @inject(RunCalls) private readonly calls: RunCalls,
    @inject(RunWorkspace) private readonly workspace: RunWorkspace,
    @inject(AgentTurn) private readonly turn: AgentTurn,
  ) {
    this.id = id;
    this.key = key;
    this.request = request;
    this.plan = plan;
    this.#secrets = secrets;
  }

  /** Starts its time limit. A run that is ended before it is read still ends. */
  admitted(): void {
    this.events.begin(announcements(this.id, this.request, this.plan));
    this.deadlines.admitted();
    this.scope.signal.addEventListener("abort", () => this.#begin(), { once: true });
  }

  /** What is stored for those who end it, if this process dies, or continue it. */
  get recovery(): RunRecovery {
    return this.events.observation.recovery;
  }

  /**
   * The request without its secrets, for those who read it or begin it again. One that is too large lacks its long texts too.
   * Undefined where it is too large all the same.
   */
  get requestCopy(): unknown {
    const isLarge = sizeOf(this.request) > maxCopyCharacters;
    const shortened = isLarge ? withoutLongTexts(this.request) : this.request;
    const copy = this.events.redactor.value(shortened);
    const secrets = unsearchableSecretsOf(this.request);
    if (secrets.size === 0 || copy === undefined) return copy;
    const hide = (_key: string, value: unknown) =>
      typeof value === "string" && secrets.has(value) ? mark : value;
    return JSON.parse(JSON.stringify(copy, hide));
  }

  /** The id of its turn, as the event `turn` has it. */
  get turnId(): string {
    return this.request.turnId ?? this.id;
  }

  /** How far it got, which determines what a failure says about the host. */
  get stage(): RunStage {
    return stageOf(progressOf(this.#state));
  }

  /** Its one result, once it has ended. */
  get result(): RunResult | undefined {
    return this.#state.name === "ended" ? this.#state.result : undefined;
  }

  /** Ends the run early. It still returns its one result. */
  cancel(reason: RunCancelled | AtCapacity | PluginBrokeContract): void {
    this.scope.abort(reason);
  }

  /** Its first events, which are there before it begins. Its reader gets them here or with the others. */
  announced(): readonly EventRecord[] {
    return this.events.unread.take();
  }

  /** From now on it acts only while this hold is current. */
  holdBy(hold: RunHold): void {
    this.right.hold = hold;
  }

  /** Ends it before it begins: observers don't count it as a run. */
  withdraw(): void {
    this.events.observation.withdraw();
    this.cancel(new RunCancelled("The run did not begin."));
  }

  /** The approximate number of characters that the run holds. */
  get held(): number {
    return this.events.held;
  }

  /** A live answer to what the run asks its user. @throws NotFound, RequestInvalid */
  answer(interactionId: string, body: unknown): void {
    this.calls.answer(interactionId, body);
  }

  /** A message of the user for the agent in its turn. @throws RequestInvalid where the agent can't take it now */
  steer(content: readonly ContentBlock[]): Promise<void> {
    return this.turn.steer(content);
  }

  /**
   * Begins the run: yields its events in groups as they happen, then exactly one result. For one reader, which reads it to
   * its end: to end the run early, cancel it.
   * @param gathering Default: none; a group is what has come since the one before.
   */
  async *parts(gathering?: GatheringLimits): AsyncGenerator<RunPart, void, undefined> {
    this.#begin();
    for await (const records of this.events.unread.groups(gathering)) yield { records };
    await this.ended;
    const { result } = this;
    if (result !== undefined) yield { result };
  }

  #begin(): void {
    if (this.#state.name !== "admitted") return;
    this.#advance({ name: "opening" });
    void this.#live();
  }

  /** Never rejects: if anything throws, the run closes what it opened and returns its one result. */
  async #live(): Promise<void> {
    const { request, plan, events, calls, workspace } = this;
    let end = await this.#takeTurn();
    const progress = progressOf(this.#state);
    calls.turnEnded(endingOf(end));
    this.#advance({ name: "closing", progress, end });
    // 7 close: everything opened, in reverse
    await this.scope.close();
    const failed = (thrown: unknown) => {
      end = this.#failed(thrown, end);
    };
    events.close(() => stopReasonOf(end), failed);
    const outcome = {
      runId: this.id,
      events,
      output: events.output(),
      progress,
      failure: failureOf(end),
      outputs: workspace.receipt,
      filledWith: workspace.filled,
      fork: workspace.fork,
      sessionName: request.sessionId ?? calls.turn,
    };
    const { result, failure } = conclude(request, plan, outcome, this.log);
    this.#advance({ name: "ended", progress, result });
    this.#settled.resolve(failure);
  }

  /** Steps 3 to 6, the run's outputs, and the events of a turn that didn't complete. Never rejects. */
  async #takeTurn(): Promise<TurnEnd> {
    let end = await this.#drive().catch((thrown: unknown) => this.#failed(thrown));
    try {
      end = await this.workspace.collect(end);
      this.#warnOfKilledProcesses();
      this.turn.emitEnd(end);
      return end;
    } catch (thrown) {
      return this.#failed(thrown, end);
    }
  }

  /** Steps 3 to 6. @throws whatever ended the turn early */
  async #drive(): Promise<TurnEnd> {
    const { request, scope, calls } = this;
    // Deferred first, so that it runs after an agent that isn't kept has been closed.
    scope.defer(() => calls.end());
    await this.right.confirmed(scope.signal);
    scope.signal.throwIfAborted();
    await calls.begin();

    // 3 open: the session's sandbox, and what the request puts into it
    const session = await this.#open();
    if (request.environment?.prepareOnly === true) return { how: "completed", stopReason: "prepared" };

    // 4 publish the tools, 5 start the agent; or reuse the session's
    const { started, remembers } = await this.#start(session);

    // 6 stream: the turn's events, completed with what only the runner knows
    const end = await this.turn.prompt(started, composePrompt(request, remembers));
    if (end.how === "completed") session.wasCutOff = false;
    return end;
  }

  async #open(): Promise<Session> {
    const { request, plan, scope } = this;
    const layer = this.sessions.keeps(request) ? undefined : await this.workspace.findLayer();
    const loan = await this.deadlines.starting("Opening the sandbox", (untimed) =>
      this.#borrow(layer, untimed),
    );
    const { session } = loan;
    this.#limitHitsBefore = session.sandbox.limitHits?.();
    // Filling has time limits of its own: a source may be large, or far away.
    await this.workspace.fill(session);
    await loan.filled();
    if (request.environment?.prepareOnly === true) return session;
    const { sandbox, harness } = plan;
    await this.deadlines.starting("Writing the request's files", () =>
      fillWorkspace(session.sandbox, sandbox.actor, request, harness.actor, scope.signal),
    );
    return session;
  }

  async #borrow(layer: string | undefined, untimed: BorrowingRun["untimed"]): Promise<Loan> {
    const { request, plan, scope, events } = this;
    const loan = await this.sessions.borrow(request, plan, {
      signal: scope.signal,
      secrets: this.#secrets,
      layer,
      untimed,
      decided: (decision, count) => events.decisions.record(decision, count),
      failed: (failure) => scope.abort(failure),
      hide: (secrets, forgotten) => events.redactor.hide(secrets, forgotten),
      asker: { sessionId: request.sessionId, runId: this.id },
      warn: (message) => events.warn({ path: "sessionId", message }),
      // One that was started ahead has files of its own in its home.
      claim: async () => (request.fork === undefined ? this.agents.claim() : undefined),
    });
    scope.defer(async () => loan.release(await this.#whyLost(loan.session)));
    this.#advance(startingIn(loan.session));
    scope.signal.throwIfAborted();
    events.redactor.hide(loan.session.secrets.all);
    return loan;
  }

  /** @returns the agent, and whether it remembers the conversation before this turn. */
  async #start(session: Session): Promise<{ readonly started: StartedAgent; readonly remembers: boolean }> {
    const { request, plan, scope, events, turn, deadlines, agents } = this;
    events.entered("starting");
    const { started, warm, continued, userMessages } = await deadlines.starting(
      "Starting the agent",
      () => agents.start(session),
      limitsHint(plan.boundary.resources),
      () => agents.whyLate(),
    );
    const { agent } = started;
    const remembers = warm || agent.history === "loaded";
    const history = warm ? "warm" : remembers ? "loaded" : hasHistory(request) ? "replayed" : "new";
    this.#advance({ name: "streaming", session, agent, history });
    if (continued && history === "new") events.warn(forgotten(session.dropped));
    session.dropped = undefined;
    session.conversation = { harness: plan.harness.actor.id, id: agent.conversation };
    scope.defer(() => this.#leaveAgent(session, started));
    turn.serve(started, session.sandbox);
    if (request.outputs !== undefined)
      await deadlines.starting("Reading the workspace", () => this.workspace.watch(session));
    // An agent that begins anew knows only what this request has.
    session.userMessages = history === "new" ? userMessagesAfter(request, []) : userMessages;
    return { started, remembers };
  }

  #warnOfKilledProcesses(): void {
    const progress = progressOf(this.#state);
    const hits = "session" in progress ? progress.session.sandbox.limitHits?.() : undefined;
    const warning = memoryWarning(this.#limitHitsBefore, hits, this.plan.boundary.resources);
    if (warning !== undefined) this.events.warn(warning);
  }

  /** The agent goes on in the session's next run, or ends here with what can't be trusted of its conversation. */
  async #leaveAgent(session: Session, started: StartedAgent): Promise<void> {
    if (this.#state.name !== "closing") return dismiss(session, started);
    const { end } = this.#state;
    const after = agentAfterTurn(end, this.turn.agentIsIdle && !started.agent.ended());
    if (after === "kept") return;
    if (after === "nothing") {
      session.conversation = undefined;
      session.dropped = `the last run failed: ${failureOf(end)?.code ?? end.how}`;
    }
    await dismiss(session, started);
  }

  /** Why the session's files can't be kept for its next run; undefined if they are. */
  async #whyLost(session: Session): Promise<string | undefined> {
    const failure = this.#state.name === "closing" ? failureOf(this.#state.end) : undefined;
    // An agent that was started ahead and had no turn.
    session.ahead = undefined;
    return await whyUnsound(session, failure, this.scope.limitMs / 4);
  }

  #advance(next: RunState): void {
    this.#state = advanceRun(this.#state, next);
    if (next.name === "ended") this.events.observation.ended(next.result);
    // A run that has its session fills the workspace first.
    else if (next.name !== "admitted") this.events.entered(next.name === "starting" ? "filling" : next.name);
  }

  /** @param before how the turn had ended until then: an earlier failure takes precedence over a later one. */
  #failed(thrown: unknown, before?: TurnEnd): TurnEnd {
    if (this.calls.isPaused && !this.scope.signal.aborted) {
      this.log.debug({ runId: this.id, error: thrown }, "the agent's turn ended when the run paused");
      return before ?? { how: "paused" };
    }
    // Once the scope is aborted, its reason counts, and not the errors that follow from it.
    const failure = this.scope.signal.aborted ? toAmbitError(this.scope.signal.reason) : toAmbitError(thrown);
    logFailure(this.log, this.id, failure);
    return before?.how === "failed" ? before : { how: "failed", failure };
  }
}

/** Undefined where the request is too large all the same: it isn't read further than that. Pure. */
function withoutLongTexts(request: RunRequest): unknown {
  let charactersLeft = maxCopyCharacters;
  const hide = (key: string, value: unknown) => {
    const shown = typeof value === "string" && value.length > maxTextOfLarge ? mark : value;
    charactersLeft -= key.length + sizeOfScalar(shown);
    if (charactersLeft < 0) throw new RangeError("the request is too large to be kept");
    return shown;
  };
  try {
    return JSON.parse(JSON.stringify(request, hide));
  } catch {
    return undefined;
  }
}

/** The run's first events: the id of its turn, if it is one of a session, and what was chosen for it. Pure. */
function announcements(
  runId: string,
  { sessionId, turnId = runId }: RunRequest,
  { harness, sandbox }: AcceptedPlan,
): readonly AgentEvent[] {
  const data = {
    runId,
    harness: harness.actor.id,
    sandbox: sandbox.actor.name,
    sessionId,
  };
  const run = { type: "data", name: "run", data, transient: true } as const;
  return sessionId === undefined ? [run] : [run, { type: "turn", turnId }];
}

/**
 * Logs why a run ended early. Stack and causes are logged only for what an operator may have to fix: a caller that
 * disconnected, a kill or a busy session isn't a fault.
 */
function logFailure(log: Log, runId: string, error: AmbitError): void {
  const fields = { runId, code: error.code };
  if (cancelledByCaller(error)) log.info({ ...fields, reason: error.message }, "the run was cancelled");
  else if (error.status < 500) log.info({ ...fields, reason: error.message }, "the run was ended");
  else log.warn({ ...fields, error }, "the run failed");
}
