import { randomUUID } from "node:crypto";
import type { AcceptedPlan } from "../boundary/index.js";
import type { AgentEvent, Receipt, RunRequest, RunResult, StreamRecord } from "../contract/index.js";
import { type AmbitError, RunCancelled, toAmbitError } from "../errors.js";
import type { ActorKinds, Agent, Log, Sandbox } from "../plugin/index.js";
import { Answers } from "./answers.js";
import { Deadlines } from "./deadlines.js";
import { Decisions } from "./decisions.js";
import { EventChannel } from "./event-channel.js";
import { Gatekeeper } from "./gatekeeper.js";
import type { RunLimits } from "./limits.js";
import { bounded, LinkedAbort, unlessAborted } from "./linked-abort.js";
import { cancelledByCaller, resultOf } from "./outcome.js";
import type { PermissionCeiling } from "./permission.js";
import { composePrompt, hasHistory } from "./prompt.js";
import { publish, requireListed } from "./publish.js";
import { Redactor, secretsOf } from "./redact.js";
import type { RunContext } from "./run-context.js";
import { OwnedScope } from "./scope.js";
import type { Session } from "./session.js";
import type { Sessions } from "./sessions.js";
import { ToolCalls } from "./tool-calls.js";
import { TurnRecord } from "./turn-record.js";
import { workspaceFiles } from "./workspace-files.js";

/** What a run needs that isn't in its request. */
export interface RunServices {
  readonly sessions: Sessions;
  readonly limits: RunLimits;
  readonly permissionCeiling: PermissionCeiling;
  readonly log: Log;
}

export interface RunOptions {
  /** Whether the result carries the events; a stream's doesn't, they came before it. */
  readonly keepsEvents: boolean;
}

/** One run of an admitted request: stops 3 to 7. Stops 1 and 2, parse and plan, are `Admission`'s. */
export class Run {
  readonly id = randomUUID();
  readonly #scope: OwnedScope;
  readonly #deadlines: Deadlines;
  readonly #events = new EventChannel<AgentEvent>();
  readonly #decisions = new Decisions((event) => this.#emit(event));
  readonly #redactor: Redactor;
  readonly #record: TurnRecord;
  readonly #paused = new AbortController();
  readonly #ended: Promise<AmbitError | undefined>;
  #settle: (failure: AmbitError | undefined) => void = () => {};
  #session: Session | undefined;
  #agent: Agent | undefined;
  #history: Receipt["session"]["history"] = "new";
  #failure: AmbitError | undefined;

  constructor(
    readonly request: RunRequest,
    readonly plan: AcceptedPlan<ActorKinds>,
    readonly services: RunServices,
    options: RunOptions,
  ) {
    const { log, limits } = services;
    this.#scope = new OwnedScope(log, limits.closeMs);
    this.#deadlines = new Deadlines(this.#scope, limits);
    this.#redactor = new Redactor(secretsOf(request));
    this.#record = new TurnRecord(options.keepsEvents);
    this.#ended = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  /** Resolves when everything the run opened is closed, with its failure if there was one. Never rejects. */
  get ended(): Promise<AmbitError | undefined> {
    return this.#ended;
  }

  /** Ends the run early; it still ends in its one result. */
  cancel(reason: RunCancelled): void {
    this.#scope.abort(reason);
  }

  /** The events as they happen, then exactly one result. A reader that stops reading cancels the run. */
  async *records(): AsyncGenerator<StreamRecord, void, undefined> {
    const driven = this.#drive()
      .catch((thrown: unknown) => this.#fail(thrown))
      .then(() => this.#close());
    try {
      for await (const event of this.#events) yield { kind: "event", event };
      await driven;
      yield { kind: "result", result: this.#result() };
    } finally {
      // For a reader that left early; a run that has ended is past both.
      this.cancel(new RunCancelled("The client went away.", "caller"));
      this.#events.close();
      await driven;
    }
  }

  async #drive(): Promise<void> {
    const { request, plan, services } = this;
    const scope = this.#scope;
    const run = this.#context();
    this.#emit({ type: "data", name: "run", data: { runId: this.id, ...this.#seats() }, transient: true });

    // 3 open: the session's sandbox, and what the request puts into it
    const loan = await this.#deadlines.starting("Opening the sandbox", () =>
      services.sessions.borrow(request, plan, scope.signal),
    );
    scope.defer(() => loan.release(this.#failure === undefined && !this.#cancelled()));
    this.#session = loan.session;
    loan.session.onDecision = (decision) => this.#decisions.record(decision);
    const { sandbox } = loan.session;
    await sandbox.writeFiles(workspaceFiles(request, sandbox.workspace));

    // 4 publish: the tools, behind permissions
    const gatekeeper = new Gatekeeper(
      request,
      services.permissionCeiling,
      Answers.of(request.messages),
      run.emit,
    );
    const toolCalls = new ToolCalls(run, gatekeeper, () => this.#paused.abort());
    const servers = await publish(run, toolCalls);

    // 5 start: the agent, with its stored conversation where there is one
    const agent = await this.#deadlines.starting("Starting the agent", () =>
      this.#start(loan.session, servers),
    );
    const remembers = agent.history === "loaded";
    if (remembers) this.#history = "loaded";
    else if (hasHistory(request)) this.#history = "replayed";

    // 6 stream: the turn's events, each completed with what only we know
    using turn = new LinkedAbort(scope.signal, this.#paused.signal);
    this.#deadlines.prompted();
    const events = agent.prompt({
      prompt: composePrompt(request, remembers),
      signal: turn.signal,
      onPermission: (question) => toolCalls.answer(question),
    });
    for await (const event of bounded(events, turn.signal, services.limits.closeMs)) {
      this.#deadlines.heard();
      await this.#emit(toolCalls.complete(event));
    }
    scope.signal.throwIfAborted();
    if (!this.#paused.signal.aborted) requireListed(servers);
    loan.session.conversation = { harness: plan.harness.actor.id, id: agent.conversation };
  }

  /** 7 close: everything opened, in reverse. */
  async #close(): Promise<void> {
    this.#decisions.flush();
    await this.#scope.close();
    this.#decisions.flush();
    this.#record.finish();
    this.#events.close();
    this.#settle(this.#failure);
  }

  #start(session: Session, servers: Awaited<ReturnType<typeof publish>>): Promise<Agent> {
    const { request, plan, services } = this;
    const scope = this.#scope;
    const { conversation } = session;
    return unlessAborted(scope.signal, async () => {
      const agent = await plan.harness.actor.start({
        signal: scope.signal,
        defer: (close) => scope.defer(close),
        sandbox: session.sandbox,
        servers,
        request,
        ...(conversation?.harness === plan.harness.actor.id ? { resume: conversation.id } : {}),
        log: services.log,
      });
      scope.defer(() => agent.close());
      this.#agent = agent;
      return agent;
    });
  }

  #fail(thrown: unknown): void {
    // Once the scope is aborted, its reason is the story; what broke because of it isn't.
    const error = toAmbitError(this.#scope.signal.aborted ? this.#scope.signal.reason : thrown);
    if (this.#paused.signal.aborted && !this.#scope.signal.aborted) {
      this.services.log.debug({ runId: this.id, error: thrown }, "the agent's turn ended with the pause");
      return;
    }
    this.services.log.info({ runId: this.id, code: error.code, error }, "the run failed");
    this.#failure = error;
    if (!this.#cancelled()) this.#emit({ type: "error", message: error.message });
  }

  #cancelled(): boolean {
    return cancelledByCaller(this.#failure);
  }

  #emit(event: AgentEvent): Promise<void> | undefined {
    let room: Promise<void> | undefined;
    for (const safe of this.#redactor.event(event)) {
      this.#record.add(safe);
      room = this.#events.push(safe);
    }
    return room;
  }

  #context(): RunContext {
    return {
      runId: this.id,
      request: this.request,
      plan: this.plan,
      scope: this.#scope,
      deadlines: this.#deadlines,
      limits: this.services.limits,
      log: this.services.log,
      sandbox: () => this.#sandbox(),
      emit: (event) => this.#emit(event),
    };
  }

  #sandbox(): Sandbox {
    if (this.#session === undefined) throw new Error("The run's sandbox isn't open.");
    return this.#session.sandbox;
  }

  #seats() {
    const { harness, sandbox } = this.plan;
    const sessionId = this.request.sessionId;
    return {
      harness: harness.actor.id,
      sandbox: sandbox.actor.name,
      ...(sessionId === undefined ? {} : { sessionId }),
    };
  }

  #result(): RunResult {
    return resultOf(this.request, this.plan, {
      runId: this.id,
      record: this.#record,
      redactor: this.#redactor,
      decisions: this.#decisions,
      history: this.#history,
      session: this.#session,
      agent: this.#agent,
      failure: this.#failure,
      paused: this.#paused.signal.aborted,
    });
  }
}
