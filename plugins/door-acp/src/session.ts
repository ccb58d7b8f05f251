import { randomUUID } from "node:crypto";
import {
  type ContentBlock,
  type PromptResponse,
  RequestError,
  type SessionUpdate,
  type StopReason,
} from "@agentclientprotocol/sdk/unstable";
import {
  type AgentEvent,
  type AmbitClient,
  AmbitError,
  type InteractionAnswer,
  type InteractionRequest,
  type Run,
  type RunRequest,
  type RunResult,
} from "@ambit/client";
import {
  messageOf as errorMessageOf,
  type UserFolder,
  type UserFolderEnd,
  type UserFolderRun,
} from "@ambit/core/plugin";
import type { Editor } from "./editor.js";
import { type RefusalContext, requestErrorOf } from "./failure.js";
import type { KeptSession, KeptSessions } from "./kept-session.js";
import { inFolder } from "./options.js";
import { decisionOf, mayRemember, permissionOf } from "./permission.js";
import { type MessageBlock, messageOf, textOf } from "./prompt.js";
import { type Choices, withChoices } from "./settings.js";
import { coalesced, ended, message, notice, noUpdates, textSaid, updatesOf } from "./updates.js";

type Messages = NonNullable<RunRequest["messages"]>;

/** Said where a run paused for a question. */
const unanswered = "The question had no answer in time, and its call was not made. Send a message to go on.";

/** Messages that are sent again to an agent that has lost its conversation. */
const maxEarlier = 200;

export interface SessionParts {
  readonly client: AmbitClient;
  readonly editor: Editor;
  readonly folder: UserFolder;
  readonly sessions: KeptSessions;
  readonly choices: Choices;
  /** What to do where the agent lacks its model's key. */
  readonly login: string | undefined;
}

/** One session of the editor: its turns are runs of one session of Ambit's. */
export class AcpSession {
  #kept: KeptSession;
  #turn: Turn | undefined;
  /** What was said, where the agent may not remember it. */
  #earlier: Messages = [];
  #remembers = true;
  readonly #warned = new Set<string>();
  /** The latest write of what is kept. */
  #written: Promise<void> = Promise.resolve();

  constructor(
    readonly parts: SessionParts,
    kept: KeptSession,
  ) {
    this.#kept = kept;
  }

  get id(): string {
    return this.#kept.sessionId;
  }

  get #refusals(): RefusalContext {
    const { mcpServers = [] } = this.choices.template;
    return { login: this.parts.login, servers: mcpServers.map(({ name }) => name) };
  }

  get kept(): KeptSession {
    return this.#kept;
  }

  get choices(): Choices {
    return this.parts.choices;
  }

  /** What the user chose, from the next turn on. */
  async choose(chosen: Partial<Pick<KeptSession, "mode" | "options">>): Promise<void> {
    await this.#keep(chosen);
  }

  /** Whether a run could begin with these choices. @throws RequestError with every gap and issue */
  async plan(chosen: Partial<Pick<KeptSession, "mode" | "options">> = {}): Promise<object> {
    const request = withChoices(this.choices, { ...this.#kept, ...chosen });
    try {
      const { plan } = await this.parts.client.plan({
        ...request,
        sessionId: this.id,
        messages: [{ role: "user", content: "plan" }],
      });
      return plan;
    } catch (error) {
      throw requestErrorOf(error, this.#refusals);
    }
  }

  /** An earlier process had this session: its agent is told what was said. @param replays whether the editor shows it again */
  async resume(replays: boolean): Promise<void> {
    for (const { prompt, updates } of this.#kept.turns) {
      const blocks = await messageOf(prompt, this.parts.folder.path, async () => undefined);
      this.#remember(blocks, textSaid(updates));
      if (!replays) continue;
      for (const content of prompt) await this.#update({ sessionUpdate: "user_message_chunk", content });
      for (const update of ended(updates)) await this.#update(update);
    }
    this.#remembers = false;
  }

  /** @throws RequestError: the turn failed, and the session goes on */
  async prompt(prompt: readonly ContentBlock[]): Promise<PromptResponse> {
    if (this.#turn !== undefined)
      throw RequestError.invalidRequest(undefined, "A turn of this session is under way: cancel it first");
    const turn = new Turn();
    this.#turn = turn;
    try {
      return await this.#take(turn, prompt);
    } catch (error) {
      if (turn.isCancelled) return { stopReason: "cancelled" };
      throw requestErrorOf(error, this.#refusals);
    } finally {
      this.#turn = undefined;
      turn.ended.resolve();
    }
  }

  cancel(): void {
    this.#turn?.cancel();
  }

  /** Ends its turn, its sandbox and its agent. */
  async close(): Promise<void> {
    const turn = this.#turn;
    turn?.cancel();
    await turn?.ended.promise;
    await this.parts.client.closeSession(this.id).catch((error: unknown) => {
      // It had no run yet.
      if (!(error instanceof AmbitError) || error.status !== 404) throw error;
    });
  }

  async #take(turn: Turn, prompt: readonly ContentBlock[]): Promise<PromptResponse> {
    const { editor, folder } = this.parts;
    const blocks = await messageOf(prompt, folder.path, (path) => editor.readUnsaved(this.id, path));
    const working = await folder.beginRun(turn.signal);
    const earlierTurns = this.#kept.turns;
    const shown = new ShownTurn(folder.path, async (updates) => {
      await this.#keep({ turns: [...earlierTurns, { prompt: [...prompt], updates: coalesced(updates) }] });
    });
    try {
      const { result, undo } = await this.#work(turn, working, blocks, shown);
      this.#remembers = true;
      for (const { path, message: why } of result.warnings ?? []) await this.#warn(`${path}: ${why}`);
      if (result.stopReason === "paused" && !turn.isCancelled) await this.#note(shown, unanswered);
      const { receipt } = result;
      return { ...endOf(result, turn), _meta: { ambit: { runId: turn.runId, undo, receipt } } };
    } catch (error) {
      // It isn't known what the agent remembers of a turn that failed.
      if (shown.hasBegun) this.#remembers = false;
      if (!turn.isCancelled) shown.updates.push(message(`\n\n${errorMessageOf(error)}\n\n`));
      throw error;
    } finally {
      if (shown.hasBegun) this.#remember(blocks, textSaid(shown.updates));
      await shown.keep();
    }
  }

  /** The turn's run, in the folder. */
  async #work(
    turn: Turn,
    working: UserFolderRun,
    blocks: readonly MessageBlock[],
    shown: ShownTurn,
  ): Promise<{ readonly result: RunResult; readonly undo: string | undefined }> {
    let end: UserFolderEnd | undefined;
    try {
      await shown.keep();
      const request = inFolder(withChoices(this.choices, this.#kept), working);
      const earlier = this.#remembers ? [] : this.#earlier;
      const messages: Messages = [...earlier, { role: "user", content: [...blocks] }];
      const result = await this.#run(turn, { ...request, messages }, shown);
      end = await working.end();
      return { result, undo: end.undo };
    } finally {
      end ??= await working.end();
      for (const path of end.disarmed)
        await this.#note(shown, `${path}: renamed, since the agent made it and git would run what it has.`);
    }
  }

  async #run(turn: Turn, request: RunRequest, shown: ShownTurn): Promise<RunResult> {
    const { client, editor, folder } = this.parts;
    const { runId } = turn;
    turn.signal.throwIfAborted();
    const run = client.run({ ...request, sessionId: this.id, runId });
    turn.begin(run);
    const questions = new Questions();
    let state = noUpdates;
    try {
      for await (const event of run) {
        await turn.heard();
        shown.add(event);
        // What the editor shows next, a killed process doesn't take with it. Where it can't be kept, the turn's end fails for it.
        if (stepEnds.has(event.type)) await shown.keep().catch(() => undefined);
        const [next, updates] = updatesOf(state, event, { folder: folder.path, ...editor.shows });
        state = next;
        for (const update of updates) await this.#update(update);
        if (event.type === "interaction_request" && event.payload?.expiresAt !== undefined)
          questions.ask(event.id, (signal) => this.#answer(turn, request, event, signal));
        if (event.type === "interaction_response" || event.type === "interaction_expired")
          questions.withdraw(event.id);
      }
      return await run.result;
    } finally {
      questions.withdrawAll();
    }
  }

  /** Asks the editor, and answers the run. Never rejects. */
  async #answer(
    turn: Turn,
    request: RunRequest,
    question: InteractionRequest,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      const answer = await this.#answerTo(turn, request, question, signal);
      if (!signal.aborted) await this.parts.client.answer(turn.runId, question.id, answer);
    } catch (error) {
      // The question is over: withdrawn, expired, or its run has ended.
      if (signal.aborted || (error instanceof AmbitError && isOver.has(error.status))) return;
      // The editor can't ask its user, so nothing is allowed that the user hasn't seen.
      await this.parts.client.answer(turn.runId, question.id, refusalOf(question)).catch(() => turn.cancel());
    }
  }

  async #answerTo(
    turn: Turn,
    request: RunRequest,
    question: InteractionRequest,
    signal: AbortSignal,
  ): Promise<InteractionAnswer> {
    const { editor, folder } = this.parts;
    const { payload = {} } = question;
    switch (question.kind) {
      case "user_approval": {
        if (turn.allowed.has(payload.toolName ?? "") && mayRemember(payload, request))
          return { approved: true };
        const permissionRequest = permissionOf(this.id, question, folder.path, request);
        const decision = decisionOf(await editor.askPermission(permissionRequest, signal), question);
        if (decision.remembered !== undefined) await this.#allow(turn, decision.remembered);
        return { approved: decision.approved };
      }
      case "user_input":
        return await editor.askInput(this.id, question.id, payload.input, signal);
      case "client_tool":
        return refusalOf(question);
    }
  }

  /** A rule of this session's later turns; in this one, the questions that it would have kept from being asked. */
  async #allow(turn: Turn, tool: string): Promise<void> {
    turn.allowed.add(tool);
    await this.#keep({ allowed: [...new Set([...this.#kept.allowed, tool])] });
  }

  /** Each warning once in a session. */
  async #warn(text: string): Promise<void> {
    if (this.#warned.has(text)) return;
    this.#warned.add(text);
    await this.#update(notice("warning", text, this.parts.editor.shows));
  }

  /** Said of a turn, also when it is shown again. */
  async #note(shown: ShownTurn, text: string): Promise<void> {
    shown.updates.push(notice("warning", text, plain));
    await this.#update(notice("warning", text, this.parts.editor.shows));
  }

  #remember(blocks: readonly MessageBlock[], said: string): void {
    const answer: Messages = said === "" ? [] : [{ role: "assistant", content: said }];
    const question: Messages = [{ role: "user", content: textOf(blocks) }];
    this.#earlier = [...this.#earlier, ...question, ...answer].slice(-maxEarlier);
  }

  /** Writes are one after the other, so that the latest state is the last. */
  async #keep(changed: Partial<KeptSession>): Promise<void> {
    this.#kept = { ...this.#kept, ...changed };
    const writing = this.#written
      .catch(() => undefined)
      .then(async () => {
        const latest = this.#kept;
        const stored = await this.parts.sessions.keep(latest);
        if (this.#kept === latest) this.#kept = stored;
      });
    this.#written = writing;
    await writing;
  }

  async #update(update: SessionUpdate): Promise<void> {
    await this.parts.editor.update(this.id, update);
  }
}

/** A question is over: another answer came first, it waited too long, or its run has ended. */
const isOver: ReadonlySet<number | undefined> = new Set([404, 409, 410]);

function refusalOf({ kind }: InteractionRequest): InteractionAnswer {
  return kind === "user_approval"
    ? { approved: false }
    : { output: "The user's editor can't do this.", isError: true };
}

/** Events at which a step of the turn is complete: what was said, a call, or a question. */
const stepEnds: ReadonlySet<AgentEvent["type"]> = new Set([
  "message",
  "message_end",
  "tool_call",
  "tool_result",
  "interaction_request",
]);

/** Any editor shows these updates. */
const plain = { showsTerminals: false, showsNotices: false } as const;

/** A turn as it is shown again, in any editor. */
class ShownTurn {
  readonly updates: SessionUpdate[] = [];
  #state = noUpdates;
  /** Whether its run has begun. */
  hasBegun = false;

  /** @param write keeps it as it is now */
  constructor(
    readonly folder: string,
    readonly write: (updates: readonly SessionUpdate[]) => Promise<void>,
  ) {}

  keep(): Promise<void> {
    return this.write(this.updates);
  }

  add(event: AgentEvent): void {
    this.hasBegun = true;
    const [state, updates] = updatesOf(this.#state, event, { folder: this.folder, ...plain });
    this.#state = state;
    this.updates.push(...updates);
  }
}

/** One prompt, until its response. */
class Turn {
  readonly runId: string = randomUUID();
  /** Settles when nothing of it is left to do. */
  readonly ended = Promise.withResolvers<void>();
  /** Tools that the user has allowed in it. */
  readonly allowed = new Set<string>();
  readonly #cancelling = new AbortController();
  #run: Run | undefined;

  get signal(): AbortSignal {
    return this.#cancelling.signal;
  }

  get isCancelled(): boolean {
    return this.signal.aborted;
  }

  begin(run: Run): void {
    this.#run = run;
  }

  cancel(): void {
    this.#cancelling.abort(new Error("The turn was cancelled."));
    this.#run?.cancel().catch(() => undefined);
  }

  /** Called with each event of the run: it may not have been known yet when the user cancelled. */
  async heard(): Promise<void> {
    if (this.isCancelled) await this.#run?.cancel();
  }
}

/** The questions of a run that the editor shows. */
class Questions {
  readonly #open = new Map<string, AbortController>();

  /** Asked once: a cut connection may bring it again. */
  ask(id: string, answer: (signal: AbortSignal) => Promise<void>): void {
    if (this.#open.has(id)) return;
    const asking = new AbortController();
    this.#open.set(id, asking);
    void answer(asking.signal);
  }

  withdraw(id: string): void {
    this.#open.get(id)?.abort();
  }

  withdrawAll(): void {
    for (const asking of this.#open.values()) asking.abort();
  }
}

const stopReasons: readonly StopReason[] = [
  "end_turn",
  "max_tokens",
  "max_turn_requests",
  "refusal",
  "cancelled",
];

function endOf({ stopReason, usage }: RunResult, turn: Turn): PromptResponse {
  const reason = stopReasons.find((one) => one === stopReason) ?? "end_turn";
  const { input = 0, output = 0, total = input + output, reasoning, cached, cacheWritten } = usage ?? {};
  return {
    stopReason: turn.isCancelled ? "cancelled" : reason,
    ...(usage === undefined
      ? {}
      : {
          usage: {
            inputTokens: input,
            outputTokens: output,
            totalTokens: total,
            ...(reasoning === undefined ? {} : { thoughtTokens: reasoning }),
            ...(cached === undefined ? {} : { cachedReadTokens: cached }),
            ...(cacheWritten === undefined ? {} : { cachedWriteTokens: cacheWritten }),
          },
        }),
  };
}
