import { setTimeout as delay } from "node:timers/promises";
import type { ContentBlock as AcpBlock } from "@agentclientprotocol/sdk/unstable";
import {
  type AgentEvent,
  type AgentEventIterator,
  AmbitError,
  type ContentBlock,
  HarnessFailed,
  isJsonObject,
  isPart,
  type JsonObject,
  type Log,
  ModelFailed,
  type TraceContext,
  type Turn,
  textOf,
  type Usage,
} from "@ambit/core/plugin";
import type { Profile } from "../profiles/profile.js";
import { type PromptAbilities, readPrompt, tokensIn, turnUsage } from "./answers.js";
import { inputReported, parentCallIn } from "./calls.js";
import type { AcpConnection, MessageReceiver } from "./connection.js";
import { modelFailure } from "./failures.js";
import { shortLine, textAt } from "./json-reading.js";
import type { DriverLimits } from "./limits.js";
import {
  allowOption,
  cancelled,
  cancelledElicitation,
  denyOutcome,
  type ElicitationResponse,
  elicitationResponse,
  inputQuestion,
  type PermissionOutcome,
} from "./questions.js";
import { UpdateReader } from "./updates.js";

interface ActiveTurnOptions {
  readonly profile: Profile;
  readonly connection: AcpConnection;
  readonly sessionId: string;
  readonly servers: readonly string[];
  readonly abilities: PromptAbilities;
  readonly limits: DriverLimits;
  /** Whether the agent listed every server's tools: no agent reports that it couldn't reach one. */
  toolsListed(): boolean;
  /** US dollars that earlier turns of the conversation cost. */
  readonly costBefore: number;
  readonly log: Log;
  /** What the agent sends outside of its turns. */
  readonly late: LateMessages;
  /** Called once, with the cost of the conversation so far, and whether the agent knows that the turn is over. */
  over(state: { readonly cost: number; readonly answered: boolean }): void;
}

/** Why the driver ends a turn. */
type Stop = { readonly why: "cancelled" | "paused" } | { readonly why: "failed"; readonly error: Error };

/** Milliseconds for a round trip, which takes an agent less than one; some never answer what they don't know. */
const roundTripMs = 250;
/** Milliseconds without an update after which an agent that isn't in order counts as quiet. */
const quietMs = 50;

const cutOff = "The turn ended before this call had a result.";

/** One `session/prompt`, from the first update to its response, as a stream of events. */
export class ActiveTurn implements AgentEventIterator, MessageReceiver {
  readonly #options: ActiveTurnOptions;
  readonly #turn: Turn;
  readonly #queue: EventQueue<AgentEvent>;
  readonly #reader: UpdateReader;
  readonly #stopped: Promise<void>;
  #tellStopped: () => void = () => undefined;
  #stop: Stop | undefined;
  readonly #grace = new CancelGrace();
  readonly #overfull = Promise.withResolvers<void>();
  #gaveUp = false;
  #isOver = false;
  /** Whether the agent has answered the prompt. */
  #isAnswered = false;
  /** Updates so far. */
  #updates = 0;
  /** What subagents said. */
  readonly #others = new ContentCount();
  readonly #finished: Promise<void>;

  constructor(turn: Turn, options: ActiveTurnOptions) {
    this.#turn = turn;
    this.#options = options;
    const { bufferedCharacters, messageCharacters } = options.limits;
    // Once it is stopped, an agent may still report two results of the largest size.
    this.#queue = new EventQueue(bufferedCharacters, bufferedCharacters + 2 * messageCharacters);
    this.#stopped = new Promise((resolve) => {
      this.#tellStopped = resolve;
    });
    this.#reader = new UpdateReader({
      emit: (event, weight) => this.#emit(event, weight),
      openCalls: options.limits.openCalls,
      openCallCharacters: options.limits.openCallCharacters,
      identify: (call) => options.profile.identify(call, options.servers),
      profile: options.profile,
      state: options.connection.state,
      log: options.log,
    });
    for (const event of options.connection.state.take()) this.#emit(event);
    this.#finished = this.#run();
  }

  next(): Promise<IteratorResult<AgentEvent, undefined>> {
    return this.#queue.next();
  }

  ready(): AgentEvent | undefined {
    return this.#queue.ready();
  }

  /** The consumer stopped reading, and the agent must be notified. */
  async return(): Promise<IteratorResult<AgentEvent, undefined>> {
    this.#end({ why: "cancelled" });
    await this.#finished;
    return { value: undefined, done: true };
  }

  room(): Promise<void> | undefined {
    return this.#queue.room();
  }

  update(params: JsonObject, size: number): void {
    this.#updates += 1;
    // A paused call stays open, whatever the agent reports about it while it is being stopped; of a failed turn nothing
    // counts.
    if (this.#stop?.why === "paused" || this.#stop?.why === "failed" || this.#gaveUp) return;
    const update = this.#isOwn(params) ? params.update : this.#ofSubagent(params);
    if (!isJsonObject(update)) return;
    const { late } = this.#options;
    try {
      if (late.isOfEndedCall(update)) late.add("call");
      else this.#reader.read(update, size);
    } catch (error) {
      this.#fail(error);
    }
  }

  async permission(request: JsonObject, size: number, withdrawn: AbortSignal): Promise<PermissionOutcome> {
    const { options } = request;
    if (this.#stop !== undefined || !isJsonObject(request.toolCall)) return cancelled;
    const reported = this.#options.profile.permissionCall?.(request.toolCall) ?? request.toolCall;
    const toolCall = this.#isOwn(request) ? reported : named(reported, request);
    const id = textAt(toolCall, "toolCallId") ?? "";
    if (id === "") {
      this.#warn("The agent asked for permission without the id of the call: refused.");
      return cancelled;
    }
    const { tools } = this.#reader;
    // The question announces its call, as a `tool_call` does.
    this.#options.late.isOfEndedCall(toolCall);
    try {
      tools.upsert(toolCall, size);
    } catch (error) {
      this.#fail(error);
      return cancelled;
    }
    const { asksBeforeInput = false } = this.#options.profile.quirks;
    if (asksBeforeInput) await inputReported(tools, id, () => this.#stop !== undefined);
    if (tools.isSettled(id)) return cancelled;
    const question = tools.question(id, this.#options.profile.ownTools);
    const answer = await this.#answer(() => this.#turn.onPermission(question, withdrawn), withdrawn);
    switch (answer) {
      case "stopped":
        return cancelled;
      case "park":
        this.#park();
        return cancelled;
      case "allow": {
        const optionId = allowOption(options);
        if (optionId !== undefined) return { outcome: "selected", optionId };
        this.#options.log.warn(
          { tool: question.toolName },
          "the agent offers no way to allow this one call: denied",
        );
        tools.deny(id);
        return denyOutcome(options);
      }
      case "deny":
        tools.deny(id);
        return denyOutcome(options);
    }
  }

  /** `cancel` if the turn ends first, the agent withdraws the question, or no user could answer it. */
  async elicitation(request: JsonObject, size: number, withdrawn: AbortSignal): Promise<ElicitationResponse> {
    const { onInput } = this.#turn;
    const question = inputQuestion(request, size);
    if (this.#stop !== undefined) return cancelledElicitation;
    if (question === undefined || !onInput) {
      this.#warn("The agent asked for input in a form that can't be shown to a user: refused.");
      return cancelledElicitation;
    }
    this.#reader.close();
    const answer = await this.#answer(() => onInput.call(this.#turn, question, withdrawn), withdrawn);
    if (answer === "park") this.#park();
    return answer === "park" || answer === "stopped"
      ? cancelledElicitation
      : elicitationResponse(answer, question);
  }

  #park(): void {
    this.#reader.close();
    this.#end({ why: "paused" });
  }

  /** @param withdrawn aborts when the agent withdraws its question (`$/cancel_request`). */
  async #answer<Answer>(ask: () => Promise<Answer>, withdrawn: AbortSignal): Promise<Answer | "stopped"> {
    if (withdrawn.aborted) return "stopped";
    const takenBack = new Promise<"stopped">((resolve) => {
      withdrawn.addEventListener("abort", () => resolve("stopped"), { once: true });
    });
    try {
      const answer = await Promise.race([ask(), takenBack, this.#stopped.then(() => "stopped" as const)]);
      return this.#stop === undefined ? answer : "stopped";
    } catch (error) {
      this.#fail(error);
      return "stopped";
    }
  }

  async #run(): Promise<void> {
    const { signal } = this.#turn;
    const abort = () => this.#end({ why: "cancelled" });
    signal.addEventListener("abort", abort, { once: true });
    try {
      if (signal.aborted) this.#done("cancelled");
      else {
        const response = await this.#prompt();
        await this.#tail();
        this.#conclude(response);
      }
      this.#queue.end();
    } catch (error) {
      this.#settle(true);
      this.#queue.end(error instanceof Error ? error : new HarnessFailed(String(error)));
    } finally {
      this.#isOver = true;
      signal.removeEventListener("abort", abort);
      this.#grace.end();
      this.#report();
      const { costBefore, connection, late, log } = this.#options;
      late.answered(this.#reader.tools.ids, log);
      connection.receive(late);
      const answered = !this.#gaveUp && !connection.closed;
      this.#options.over({ cost: this.#reader.cost ?? costBefore, answered });
    }
  }

  /** The agent's response; empty if it was stopped and then failed, or didn't respond in time. */
  async #prompt(): Promise<JsonObject> {
    const { connection, profile, sessionId, abilities, late, log } = this.#options;
    if (!late.isTrusted) {
      await Promise.race([late.over(), this.#stopped]);
      // What the agent had written until now has arrived with its answer.
      await connection.roundTripWithin(roundTripMs);
      if (this.#stop !== undefined) return {};
    }
    const prompt = promptContent(this.#turn.prompt, abilities, profile.title);
    const parameters = { sessionId, prompt, ...traceMeta(this.#turn) };
    connection.receive(this);
    const answer = connection
      .request("session/prompt", parameters, "the prompt", this.#grace.cancelRequest)
      .then((response): JsonObject => readPrompt(response, profile.title))
      .catch((error: unknown): JsonObject => {
        if (this.#stop === undefined) throw error;
        log.debug({ error }, "the agent failed while it was being stopped");
        return {};
      });
    const response = await Promise.race([answer, this.#graceOver()]);
    this.#isAnswered = !this.#gaveUp;
    return response;
  }

  /**
   * Settles when the agent is known to be quiet. What it sends until then belongs to this turn: several agents answer the
   * prompt before they have sent everything.
   */
  async #tail(): Promise<void> {
    const { connection, late, limits, profile } = this.#options;
    const before = this.#updates;
    const { tools } = this.#reader;
    if (this.#gaveUp || connection.closed) return;
    if (profile.quirks.staysInOrder && late.isTrusted && !tools.hasOpen) return;
    const isInOrder = await connection.roundTripWithin(roundTripMs);
    if (this.#updates !== before) late.distrust();
    const goesOn = () => this.#stop === undefined && !connection.closed;
    if (isInOrder && late.isTrusted && !tools.hasOpen) return;
    for (const end = performance.now() + limits.lateMs; goesOn() && performance.now() < end; ) {
      const seen = this.#updates;
      await delay(Math.min(quietMs, limits.lateMs));
      if (this.#updates === seen && !tools.hasOpen) return;
    }
  }

  #isOwn({ sessionId }: JsonObject): boolean {
    return sessionId === this.#options.sessionId;
  }

  /**
   * A subagent's calls are shown as the turn's. What it says isn't the turn's text: it is shown where the agent names the call
   * that it belongs to.
   */
  #ofSubagent(params: JsonObject): JsonObject | undefined {
    const { update } = params;
    const kind = contentKind(update);
    if (kind === "call" && isJsonObject(update)) return named(update, params);
    if (kind === "text" && isJsonObject(update) && parentCallIn(update) !== undefined) return update;
    if (kind !== undefined) this.#others.add(kind);
    return undefined;
  }

  /** Warns of everything that this turn doesn't show. */
  #report(): void {
    const { connection, late } = this.#options;
    const { words } = this.#others;
    if (words !== undefined) this.#warn(`The agent's subagents sent ${words}: not shown.`);
    const ofEarlier = late.take();
    if (ofEarlier !== undefined) this.#warn(ofEarlier);
    // The time limit's own message can't know it.
    const { reason } = this.#turn.signal;
    if (reason instanceof AmbitError && reason.code === "run_timed_out" && connection.noise !== undefined)
      this.#warn(connection.noise);
  }

  #warn(message: string): void {
    this.#options.log.warn({ agent: this.#options.profile.title }, message);
    this.#turn.warn?.(message);
  }

  async #graceOver(): Promise<JsonObject> {
    await this.#stopped;
    await Promise.race([this.#grace.over(this.#options.limits.cancelMs), this.#overfull.promise]);
    this.#gaveUp = true;
    return {};
  }

  #fail(error: unknown): void {
    this.#end({ why: "failed", error: error instanceof Error ? error : new Error(String(error)) });
  }

  /** Notifies the agent first, then answers its questions: an answer alone would let it continue. */
  #end(stop: Stop): void {
    if (this.#stop !== undefined || this.#isOver) return;
    this.#stop = stop;
    const { connection, sessionId } = this.#options;
    // An agent that isn't in a turn might cancel its next one.
    if (!this.#isAnswered) connection.notify("session/cancel", { sessionId });
    // The agent's last updates arrive after everything that isn't read yet.
    this.#queue.lift();
    this.#tellStopped();
  }

  #conclude(response: JsonObject): void {
    const { profile, costBefore } = this.#options;
    const tokens = profile.usage?.(response) ?? tokensIn(response);
    const usage = turnUsage(profile.reports.usage ? tokens : undefined, this.#reader.cost, costBefore);
    this.#settle();
    // A failed turn has its usage too: it was paid for.
    if (usage !== undefined) this.#emit({ type: "usage", ...usage });
    if (this.#stop?.why === "failed") throw this.#stop.error;
    const failure =
      this.#stop === undefined ? turnFailure(profile, response, this.#reader, tokens) : undefined;
    if (failure !== undefined) throw failure;
    if (this.#stop === undefined && !this.#options.toolsListed()) throw withoutTools(profile.title);
    this.#done(this.#stop?.why ?? textAt(response, "stopReason") ?? "end_turn");
  }

  /** What is open after a pause, or after the agent's own end, the run decides on: it knows which calls ran. */
  #settle(isStopped = this.#stop !== undefined): void {
    this.#reader.close();
    if (isStopped && this.#stop?.why !== "paused") this.#reader.tools.settle(cutOff);
  }

  #done(stopReason: string): void {
    this.#queue.push({ type: "done", stopReason });
  }

  #emit(event: AgentEvent, weight = 0): void {
    // Once it was stopped, the agent's output is read even without a consumer, so that it doesn't pile up.
    if (this.#stop !== undefined && this.#queue.full && isPart(event, "delta")) return;
    this.#queue.push(event, eventSize(event) + weight);
    if (this.#stop === undefined || this.#gaveUp || !this.#queue.overfull) return;
    // It was told to end, and sends ever more.
    this.#gaveUp = true;
    this.#overfull.resolve();
  }
}

/** Subagents count their calls by themselves: within a turn, an id is unique only together with its session's. */
function named(call: JsonObject, { sessionId }: JsonObject): JsonObject {
  const id = textAt(call, "toolCallId");
  return id === undefined ? call : { ...call, toolCallId: `${String(sessionId)}/${id}` };
}

/** About how many characters an event keeps in memory, in addition to its tool call or data. Pure. */
function eventSize(event: AgentEvent): number {
  const { length } = textOf(event);
  return length === 0 ? 256 : 64 + length;
}

/** The time that an agent gets to end a turn after `session/cancel`. */
class CancelGrace {
  readonly #request = new AbortController();
  #timer: NodeJS.Timeout | undefined;

  /** Aborts after half of the time: `session/cancel` alone didn't end the turn, so the prompt itself is cancelled. */
  get cancelRequest(): AbortSignal {
    return this.#request.signal;
  }

  /** Resolves when the time is over; never after `end`. */
  async over(milliseconds: number): Promise<void> {
    await this.#wait(milliseconds / 2);
    this.#request.abort();
    await this.#wait(milliseconds / 2);
  }

  end(): void {
    clearTimeout(this.#timer);
  }

  #wait(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      this.#timer = setTimeout(resolve, milliseconds);
    });
  }
}

/** Why a turn counts as failed although the agent ended it normally; undefined if it doesn't. */
function turnFailure(
  profile: Pick<Profile, "title" | "failure">,
  response: JsonObject,
  reader: Pick<UpdateReader, "failure" | "failureIn" | "idle">,
  tokens: Usage | undefined,
): ModelFailed | undefined {
  const { title } = profile;
  const failure = profile.failure?.(response) ?? reader.failure ?? reader.failureIn(response._meta);
  if (failure !== undefined) {
    return modelFailure(title, failure);
  }
  if (response.stopReason !== "end_turn" || !reader.idle || tokens !== undefined) return undefined;
  return new ModelFailed(
    `${title} ended its turn without an answer and without using its model: see its credential, its model's name and its quota.`,
    { retryable: true },
  );
}

/** No agent reports that it couldn't reach a tool server: it only works without those tools. */
function withoutTools(title: string): HarnessFailed {
  return new HarnessFailed(
    `${title} never asked for the run's tools: its turn ran without them, and so counts as failed.`,
  );
}

type Kind = keyof typeof kindNames;

const kindNames = {
  text: ["piece of text", "pieces of text"],
  call: ["report of a tool call", "reports of tool calls"],
  question: ["question", "questions"],
} as const;

/** What a user would see of an update; undefined for nothing, as for a session's state. Pure. */
export function contentKind(update: unknown): Exclude<Kind, "question"> | undefined {
  if (!isJsonObject(update)) return undefined;
  switch (update.sessionUpdate) {
    case "agent_message_chunk":
    case "agent_thought_chunk":
      // Some agents report what a model call used in an update without text.
      return isJsonObject(update.content) && update.content.text !== "" ? "text" : undefined;
    case "plan":
      return "text";
    case "tool_call":
    case "tool_call_update":
      return "call";
    default:
      return undefined;
  }
}

/** Counts what isn't shown, for a warning. */
class ContentCount {
  readonly #counts = new Map<Kind, number>();

  add(kind: Kind): void {
    this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + 1);
  }

  /** `2 pieces of text and 1 question`; undefined for nothing. */
  get words(): string | undefined {
    const words = [...this.#counts].map(
      ([kind, count]) => `${count.toLocaleString("en")} ${kindNames[kind][count === 1 ? 0 : 1]}`,
    );
    return words.length === 0 ? undefined : words.join(" and ");
  }

  clear(): void {
    this.#counts.clear();
  }
}

/** Calls of ended turns that are remembered by their ids. */
const maxEndedCalls = 4_096;

interface LateMessagesOptions {
  readonly title: string;
  readonly connection: Pick<AcpConnection, "state">;
  /** Whether it is known to send nothing of a turn after the turn's answer. */
  readonly staysInOrder: boolean;
  readonly limits: Pick<DriverLimits, "lateMs">;
}

/**
 * What an agent sends after the end of a turn. It belongs to that turn, whose events are over: it is counted, and never
 * given to the next one.
 */
export class LateMessages implements MessageReceiver {
  readonly #options: LateMessagesOptions;
  readonly #count = new ContentCount();
  readonly #endedCalls = new Set<string>();
  /** When it last answered a prompt, or sent something late. */
  #lastAt = 0;
  #wasLate = false;
  #isTrusted: boolean;
  #log: Log | undefined;

  constructor(options: LateMessagesOptions) {
    this.#options = options;
    this.#isTrusted = options.staysInOrder;
  }

  /** Whether a turn's answer is known to be the last that the agent sends of it. */
  get isTrusted(): boolean {
    return this.#isTrusted;
  }

  /** A turn has been answered. @param calls the ids of its calls, with or without a result. */
  answered(calls: Iterable<string>, log: Log): void {
    this.#log = log;
    this.#lastAt = performance.now();
    for (const id of calls) this.#endedCalls.add(id);
    for (const oldest of this.#endedCalls) {
      if (this.#endedCalls.size <= maxEndedCalls) break;
      this.#endedCalls.delete(oldest);
    }
  }

  /**
   * Whether an update is about a call of an ended turn: many agents begin to count their calls again with each turn, but
   * announce the new one.
   */
  isOfEndedCall(update: JsonObject): boolean {
    const id = textAt(update, "toolCallId");
    if (id === undefined || !this.#endedCalls.has(id)) return false;
    if (update.sessionUpdate === "tool_call_update") return true;
    this.#endedCalls.delete(id);
    return false;
  }

  /** It sends after its answers. */
  distrust(): void {
    this.#wasLate = true;
    this.#isTrusted = false;
  }

  /** It sent something of an ended turn. */
  add(kind: Kind): void {
    if (this.#count.words === undefined) {
      const said = "the agent sent updates of a turn that it had ended";
      this.#log?.warn({ agent: this.#options.title, kind }, said);
    }
    this.#count.add(kind);
    this.distrust();
    this.#lastAt = performance.now();
  }

  update({ update }: JsonObject): void {
    this.#options.connection.state.note(update);
    const kind = contentKind(update);
    if (kind !== undefined) this.add(kind);
  }

  async permission({ toolCall }: JsonObject): Promise<PermissionOutcome> {
    const call = isJsonObject(toolCall) ? shortLine(textAt(toolCall, "title") ?? "", 100) : "";
    this.#refuse(`permission for a tool call${call === "" ? "" : ` (${call})`}`);
    return cancelled;
  }

  async elicitation(): Promise<ElicitationResponse> {
    this.#refuse("input");
    return cancelledElicitation;
  }

  room(): undefined {
    return undefined;
  }

  /**
   * Settles when nothing more of the last turn can arrive: for an agent that isn't trusted, `lateMs` after the last
   * message, and at most twice that long.
   */
  async over(): Promise<void> {
    const { lateMs } = this.#options.limits;
    if (this.#isTrusted || this.#lastAt === 0) return;
    const latest = performance.now() + 2 * lateMs;
    for (;;) {
      const until = Math.min(this.#lastAt + lateMs, latest);
      const missing = until - performance.now();
      if (missing <= 0) break;
      await delay(missing);
    }
    // One that had the time to be late, and wasn't.
    if (!this.#wasLate) this.#isTrusted = true;
  }

  /** A sentence about everything that was counted since the last call; undefined for nothing. */
  take(): string | undefined {
    const { words } = this.#count;
    this.#count.clear();
    if (words === undefined) return undefined;
    return `After the end of an earlier turn ${this.#options.title} sent ${words} of it: not shown.`;
  }

  #refuse(what: string): void {
    this.add("question");
    this.#log?.warn(
      { agent: this.#options.title },
      `the agent asked for ${what} outside of its turns: refused`,
    );
  }
}

/**
 * Events between the agent's output and a consumer that may be slower. It never rejects an event: `room` tells the
 * producer to stop reading, so the content stays within `capacity` plus one read.
 *
 * Separate from the runner's channel, which holds what is redacted: a harness yields its events, the runner takes each when
 * it may read it, and after a cancel the agent's output is still read, although it has no reader.
 */
export class EventQueue<Item extends NonNullable<unknown>> {
  #items: Item[] = [];
  #weights: number[] = [];
  #first = 0;
  #weight = 0;
  #ended = false;
  #error: Error | undefined;
  #waiting:
    | { resolve(result: IteratorResult<Item, undefined>): void; reject(error: Error): void }
    | undefined;
  #space: { readonly promise: Promise<void>; readonly open: () => void } | undefined;
  #unbounded = false;

  /**
   * All in the unit of the weights: about characters.
   *
   * @param maxLifted after `lift`. Default: without limit.
   */
  constructor(
    readonly capacity: number,
    readonly maxLifted = Number.POSITIVE_INFINITY,
  ) {}

  get full(): boolean {
    return this.#weight > this.capacity;
  }

  /** Whether a producer that is still read after `lift` has sent more than it may. */
  get overfull(): boolean {
    return this.#weight > this.maxLifted;
  }

  push(item: Item, weight = 0): void {
    if (this.#ended) return;
    if (this.#waiting !== undefined) {
      const { resolve } = this.#waiting;
      this.#waiting = undefined;
      resolve({ value: item, done: false });
      return;
    }
    this.#items.push(item);
    this.#weights.push(weight);
    this.#weight += weight;
  }

  /** Settles when there is room again; undefined if there is some now. */
  room(): Promise<void> | undefined {
    if (this.#unbounded || !this.full) return undefined;
    if (this.#space === undefined) {
      let open: () => void = () => undefined;
      const promise = new Promise<void>((resolve) => {
        open = resolve;
      });
      this.#space = { promise, open };
    }
    return this.#space.promise;
  }

  /**
   * From now on the producer keeps reading even without a consumer, to reach later messages, and stops by itself once the
   * queue is `overfull`.
   */
  lift(): void {
    this.#unbounded = true;
    this.#release();
  }

  /** Queued events are still delivered; then the iteration ends, or throws `error`. */
  end(error?: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.lift();
    if (this.#waiting === undefined) return;
    const { resolve, reject } = this.#waiting;
    this.#waiting = undefined;
    if (error === undefined) resolve({ value: undefined, done: true });
    else reject(error);
  }

  /** The next item, if there is one. */
  ready(): Item | undefined {
    const item = this.#items[this.#first];
    if (item === undefined) return undefined;
    this.#weight -= this.#weights[this.#first] ?? 0;
    this.#first += 1;
    if (this.#first === this.#items.length || this.#first > 1_024) {
      this.#items = this.#items.slice(this.#first);
      this.#weights = this.#weights.slice(this.#first);
      this.#first = 0;
    }
    if (this.#space !== undefined && this.#weight <= this.capacity / 2) this.#release();
    return item;
  }

  /** The next item, for one consumer that requests one at a time. */
  next(): Promise<IteratorResult<Item, undefined>> {
    const item = this.ready();
    if (item !== undefined) return Promise.resolve({ value: item, done: false });
    if (this.#ended) {
      const error = this.#error;
      this.#error = undefined;
      return error === undefined ? Promise.resolve({ value: undefined, done: true }) : Promise.reject(error);
    }
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }

  #release(): void {
    this.#space?.open();
    this.#space = undefined;
  }
}

/** `_meta` with the trace context of a turn, under the names that ACP reserves for it. */
function traceMeta({ traceparent, tracestate }: TraceContext): object {
  if (traceparent === undefined) return {};
  return { _meta: { traceparent, tracestate } };
}

/** @throws HarnessFailed for a block that the agent can't take: leaving it out would change the request. */
export function promptContent(
  blocks: readonly ContentBlock[],
  abilities: PromptAbilities,
  title: string,
): AcpBlock[] {
  return blocks.map((block) => acpBlock(block, abilities, title));
}

function acpBlock(block: ContentBlock, abilities: PromptAbilities, title: string): AcpBlock {
  const refused = (what: string) =>
    new HarnessFailed(`${title} doesn't support ${what} in a prompt: remove it.`);
  const uri = block.uri ?? `attachment:${block.attachmentId ?? block.filename ?? "unnamed"}`;
  const mimeType = block.mimeType ?? "application/octet-stream";
  switch (block.type) {
    case "text":
      return { type: "text", text: block.text ?? "" };
    case "image":
    case "audio":
    case "resource":
    case "attachment": {
      const { data } = block;
      if (data !== undefined && mimeType.startsWith("image/")) {
        if (!abilities.image) throw refused("images");
        return { type: "image", data, mimeType };
      }
      if (data !== undefined && mimeType.startsWith("audio/")) {
        if (!abilities.audio) throw refused("sound");
        return { type: "audio", data, mimeType };
      }
      if (block.text !== undefined || data !== undefined) {
        if (!abilities.embeddedContext) throw refused("files");
        const resource =
          block.text !== undefined
            ? { uri, mimeType, text: block.text }
            : { uri, mimeType, blob: data ?? "" };
        return { type: "resource", resource };
      }
      if (block.uri === undefined) throw refused(`a block of type '${block.type}' without content`);
      return {
        type: "resource_link",
        uri: block.uri,
        name: block.filename ?? block.uri,
        ...(block.mimeType === undefined ? {} : { mimeType }),
        size: block.size,
      };
    }
    default:
      throw refused(`a block of type '${block.type}'`);
  }
}
