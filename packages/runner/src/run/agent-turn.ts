import {
  asPluginError,
  cancelledByCaller,
  errorDetailOf,
  HarnessFailed,
  inOffer,
  isAmbitError,
  ModelFailed,
  offerTitle,
  ofOffer,
  outsideOffers,
  PluginBrokeContract,
  RequestInvalid,
  toAmbitError,
} from "@ambit/core";
import { type AgentEvent, type ContentBlock, isAbout, type Usage } from "@ambit/core/contract";
import { type Agent, type Sandbox, type Turn, unlessAborted } from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import { CallEvents, isWithoutResult, type NestedEvent } from "../call/call-events.js";
import { RunCalls } from "../call/run-calls.js";
import { RunEvents } from "../events/run-events.js";
import { pathBeyondDepth } from "../json-values.js";
import { Deadlines, LinkedAbort, type OwnedScope, Pause, settlesWithin } from "../lifetime/scope.js";
import type { RunLimits } from "../limits.js";
import { ModelCalls } from "../model/model-calls.js";
import { requireListed, type StartedAgent } from "../session/publish.js";
import { type PlannedRun, tokens } from "../tokens.js";
import type { TurnEnd } from "./run-state.js";

/** Milliseconds in which an agent says whether it has taken a message. */
const steeringMs = 30_000;
const steeringFix = 'begin another run of the session with `whenBusy: "queue"` or `"interrupt"`';

type PassedEvent = Exclude<AgentEvent, { type: "done" }>;

/** Step 6: the agent's turn and its events. */
@injectable()
export class AgentTurn {
  constructor(
    @inject(tokens.run) private readonly planned: PlannedRun,
    @inject(tokens.limits) private readonly limits: RunLimits,
    @inject(tokens.scope) private readonly scope: OwnedScope,
    @inject(Deadlines) private readonly deadlines: Deadlines,
    @inject(RunEvents) private readonly events: RunEvents,
    @inject(RunCalls) private readonly calls: RunCalls,
    @inject(CallEvents) private readonly callEvents: CallEvents,
    @inject(Pause) private readonly pause: Pause,
    @inject(ModelCalls) private readonly modelCalls: ModelCalls,
  ) {}

  /** The agent's own figures, held back because those of the model's provider take precedence. */
  #usage: Usage | undefined;
  /** The agent while it is in this run's turn. */
  #prompted: Agent | undefined;
  /** Whether the agent got this run's prompt and hasn't ended its turn. */
  #hasOpenTurn = false;

  /** Whether the agent wasn't prompted, or ended its turn itself, as after a cancel in time. It can then take another turn. */
  get agentIsIdle(): boolean {
    return !this.#hasOpenTurn;
  }

  /** From now on until the run closes, what the agent asks and calls is this run's. @throws PluginBrokeContract */
  serve({ agent, router, modelRouter, toolNames }: StartedAgent, sandbox: Sandbox): void {
    this.scope.defer(() => {
      router.current = undefined;
      modelRouter.current = undefined;
    });
    this.calls.serve(router, toolNames, sandbox);
    this.modelCalls.serve(modelRouter, agent);
  }

  /**
   * Prompts the agent and passes its events on, until its turn ends.
   * @throws the run's reason when it was aborted, and any error that ended the turn early, with its real cause where the
   * model's gateway knows it; ModelFailed, BoundaryRefused or HarnessFailed for a turn that only seems to have succeeded.
   */
  async prompt({ agent, servers }: StartedAgent, prompt: readonly ContentBlock[]): Promise<TurnEnd> {
    try {
      const stopReason = this.modelCalls.stopReason(await this.#untilLimit(agent, prompt));
      if (this.pause.isPaused) {
        // The agent may have ended its turn meanwhile.
        this.pause.takeEffect();
        return { how: "paused" };
      }
      this.modelCalls.requireResponse();
      this.modelCalls.warnOfPartial();
      requireListed(servers);
      this.#requireOutput(stopReason);
      return { how: "completed", stopReason };
    } catch (thrown) {
      throw this.scope.signal.aborted ? thrown : this.modelCalls.explained(toAmbitError(thrown));
    }
  }

  /**
   * Hands a message of the user to the agent in its turn, and shows it as an event.
   * @throws RequestInvalid where the agent can't take it, or isn't in its turn
   */
  async steer(content: readonly ContentBlock[]): Promise<void> {
    const agent = this.#prompted;
    const harness = this.planned.plan.harness.actor;
    const refused = (why: string) =>
      new RequestInvalid([{ path: "runId", message: `${why}: ${steeringFix}` }]);
    if (agent === undefined || this.scope.signal.aborted) throw refused("its agent isn't in its turn now");
    if (this.pause.isPaused) throw refused("it waits for an answer of its user");
    const { steer } = agent;
    if (steer === undefined) throw refused(`'${harness.id}' takes no message before its turn has ended`);
    const signal = AbortSignal.any([this.scope.signal, AbortSignal.timeout(steeringMs)]);
    const text = content.flatMap((block) => block.text ?? []).join("\n");
    // Before what the agent says to it.
    this.events.emit({ type: "data", name: "user_message", data: { text } });
    const isTaken = await unlessAborted(signal, () =>
      inOffer(harness, () => steer.call(agent, content, signal)),
    );
    if (!isTaken) throw refused("its agent's turn has just ended");
  }

  /** Some agents fail where their model stops at the limit of its answer's length: the turn ended with it. */
  async #untilLimit(agent: Agent, prompt: readonly ContentBlock[]): Promise<string | undefined> {
    try {
      return await this.#stream(agent, prompt);
    } catch (thrown) {
      if (this.scope.signal.aborted || !isAmbitError(thrown) || !this.modelCalls.isLimit(thrown))
        throw thrown;
      this.#settleEnded();
      return undefined;
    }
  }

  /** `done` isn't passed on, since the run isn't over yet. @returns the agent's stop reason. */
  async #stream(agent: Agent, prompt: readonly ContentBlock[]): Promise<string | undefined> {
    const { scope, deadlines, limits, calls, pause } = this;
    const harness = this.planned.plan.harness.actor;
    const who = offerTitle(harness);
    scope.signal.throwIfAborted();
    using ended = new LinkedAbort(scope.signal, pause.effect);
    deadlines.prompted();
    this.#hasOpenTurn = true;
    this.#prompted = agent;
    let done = false;
    let stopReason: string | undefined;
    try {
      const turn: Turn = {
        prompt,
        signal: ended.signal,
        ...this.events.observation.trace(),
        onPermission: (question, withdrawn) => outsideOffers(() => calls.decide(question, withdrawn)),
        onInput: (question, withdrawn) => outsideOffers(() => calls.forms.answer(question, withdrawn)),
        warn: (message) => this.events.warn({ path: "harness", message }),
      };
      const events = {
        [Symbol.asyncIterator]: () =>
          ofOffer(
            harness,
            inOffer(harness, () => agent.prompt(turn)[Symbol.asyncIterator]()),
          ),
      };
      await readBounded(events, ended.signal, limits.closeMs, (event) => {
        deadlines.recordActivity();
        if (event.type === "done") {
          done = true;
          stopReason = event.stopReason;
          return undefined;
        }
        requireShallow(event, who);
        const room = this.#pass(event);
        return room === undefined ? undefined : this.#waitFor(room);
      });
      this.#settleEnded();
    } catch (thrown) {
      throw asPluginError(who, thrown);
    } finally {
      this.#prompted = undefined;
    }
    this.#hasOpenTurn = !done && !pause.isPaused;
    scope.signal.throwIfAborted();
    if (!done && !pause.isPaused)
      throw new PluginBrokeContract(`${who} ended its turn without a done event.`);
    return stopReason;
  }

  /** The agent has ended its turn itself: the calls that it left open won't have a result. */
  #settleEnded(): void {
    if (this.pause.isPaused) return;
    const events = this.callEvents.settleOpen("ended");
    for (const event of events) this.events.emit(event);
    const open = events.filter(isWithoutResult).length;
    if (open === 0 || this.scope.signal.aborted) return;
    const calls = open === 1 ? "a call" : `${open.toLocaleString("en")} calls`;
    this.events.warn({
      path: "harness",
      message: `The agent ended its turn before ${calls} had a result: what was called may have run.`,
    });
  }

  /** @returns what to wait for before the next event; undefined while the reader keeps up. */
  #pass(event: PassedEvent): Promise<void> | undefined {
    if (event.type === "usage") {
      const { type: _type, ...usage } = event;
      this.#usage = { ...this.#usage, ...usage };
      return undefined;
    }
    if (isAbout(event, "call")) {
      const room = this.#pushAll(this.callEvents.complete(event));
      this.deadlines.setOpenCall(this.callEvents.openCall);
      return room;
    }
    return isNested(event) ? this.#pushAll(this.callEvents.nested(event)) : this.events.push(event);
  }

  #pushAll(events: readonly AgentEvent[]): Promise<void> | undefined {
    let room: Promise<void> | undefined;
    for (const event of events) room = this.events.push(event) ?? room;
    return room;
  }

  /**
   * An agent whose model returned nothing may end its turn without an error.
   * @throws ModelFailed when it produced no output and called no tool.
   */
  #requireOutput(stopReason: string | undefined): void {
    const isDone = this.events.record.hasOutput || this.calls.acted;
    if (isDone || (stopReason !== undefined && stopReason !== "end_turn")) return;
    throw new ModelFailed(
      "The agent ended its turn without any output: check its model's name, credential and quota.",
      { retryable: true },
    );
  }

  /** Sends what is left once the turn has ended: the events of one that ended early, and its usage. */
  emitEnd(end: TurnEnd): void {
    this.#emitUnsettled(end);
    this.#emitUsage();
  }

  /** Sends the usage that the model's provider counted, and what only the agent reports of it. */
  #emitUsage(): void {
    const usage = { ...this.#usage, ...this.modelCalls.usage };
    if (Object.keys(usage).length > 0) this.events.emit({ type: "usage", ...usage });
  }

  /** The events that are still to be sent for a turn that was ended early. */
  #emitUnsettled(end: TurnEnd): void {
    const { events, callEvents } = this;
    if (end.how === "completed") return;
    events.endBlocks();
    if (end.how === "failed" && !cancelledByCaller(end.failure)) {
      for (const event of callEvents.release()) events.emit(event);
      const { message, code } = end.failure;
      const detail = errorDetailOf(end.failure.toFailure(), message);
      events.emit({ type: "error", message, code, detail });
      return;
    }
    const why = end.how === "paused" ? "paused" : "interrupted";
    for (const event of callEvents.settleOpen(why)) events.emit(event);
  }

  /** Waits for the reader. A slow reader slows the agent, which doesn't count as idle meanwhile. */
  async #waitFor(room: Promise<void>): Promise<void> {
    const release = this.deadlines.hold();
    try {
      await unlessAborted(this.scope.signal, () => room);
    } finally {
      release();
    }
  }
}

function isNested(event: AgentEvent): event is NestedEvent {
  return "parentToolCallId" in event && event.parentToolCallId !== undefined;
}

/** The following steps recurse: a stack overflow in them would hide that the agent caused it. */
function requireShallow(event: AgentEvent, who: string): void {
  if (pathBeyondDepth(event) === undefined) return;
  throw new HarnessFailed(`${who} sent a '${event.type}' with too many levels of lists and objects in it.`);
}

/** The source: `AgentEvents` of a turn, or any async iterable. */
export interface ItemSource<Item> {
  [Symbol.asyncIterator](): AsyncIterator<Item> & {
    /** The next item, if it has already arrived. */
    ready?(): Item | undefined;
  };
}

/**
 * Hands each item of a source to `handle`, in order. Once the signal aborts, the source has `graceMs` to end.
 * An item that has already arrived costs no promise.
 *
 * @param handle returns a promise to delay the next item.
 * @throws the signal's reason when the source didn't end in time; what the source or `handle` threw, after the source
 * had `graceMs` to clean up.
 */
export async function readBounded<Item extends NonNullable<unknown>>(
  source: ItemSource<Item>,
  signal: AbortSignal,
  graceMs: number,
  handle: (item: Item) => Promise<void> | undefined,
): Promise<void> {
  const iterator = source[Symbol.asyncIterator]();
  let timer: NodeJS.Timeout | undefined;
  let isWaiting = false;
  let isOverdue = false;
  let isOver = false;
  let giveUp: (reason: unknown) => void = () => {};
  const overdue = new Promise<never>((_resolve, reject) => {
    giveUp = reject;
  });
  const begin = () => {
    timer = setTimeout(() => {
      isOverdue = true;
      if (isWaiting) giveUp(signal.reason);
    }, graceMs);
  };
  const read = async () => {
    for (;;) {
      isWaiting = true;
      const next = await iterator.next();
      isWaiting = false;
      if (isOver || next.done === true) return;
      for (let item: Item | undefined = next.value; item !== undefined; item = iterator.ready?.()) {
        const handled = handle(item);
        if (handled !== undefined) await handled;
        if (isOverdue) throw signal.reason;
      }
    }
  };
  if (signal.aborted) begin();
  else signal.addEventListener("abort", begin, { once: true });
  try {
    await Promise.race([read(), overdue]);
  } catch (error) {
    isOver = true;
    await leave(iterator, isOverdue ? 0 : graceMs);
    throw error;
  } finally {
    signal.removeEventListener("abort", begin);
    clearTimeout(timer);
  }
}

/** Gives the source time to clean up. Its errors are ignored: the reason why the loop ended counts. */
async function leave(iterator: AsyncIterator<unknown>, graceMs: number): Promise<void> {
  const left = Promise.resolve(iterator.return?.()).then(
    () => undefined,
    () => undefined,
  );
  await settlesWithin(left, graceMs);
}
