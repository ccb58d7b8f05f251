import { randomUUID } from "node:crypto";
import {
  type ContentBlock,
  type PromptResponse,
  RequestError,
  type SessionUpdate,
  type StopReason,
} from "@agentclientprotocol/sdk/unstable";
import {
  type AmbitClient,
  AmbitError,
  type InteractionAnswer,
  type InteractionRequest,
  type Run,
  type RunRequest,
  type RunResult,
} from "@ambit/client";
import type { UserFolder, UserFolderEnd, UserFolderRun } from "@ambit/core/plugin";
import type { Editor } from "./editor.js";
import { type RefusalContext, requestErrorOf } from "./failure.js";
import { type FolderSessions, type StoredTurn, unanswered } from "./folder-sessions.js";
import { inFolder } from "./options.js";
import { decisionOf, mayRemember, permissionOf } from "./permission.js";
import { type MessageBlock, messageOf } from "./prompt.js";
import { type Choices, type Chosen, withChoices } from "./settings.js";
import { notice, noUpdates, updatesOf } from "./updates.js";

type Messages = NonNullable<RunRequest["messages"]>;

/** Messages that are sent again to an agent that has lost its conversation, and their characters: the latest. */
const maxEarlier = 200;
const maxEarlierCharacters = 262_144;

export interface SessionParts {
  /** As the editor knows it. */
  readonly id: string;
  /** The session of Ambit's that its runs have. */
  readonly runsSession: string;
  readonly editor: Editor;
  readonly folder: UserFolder;
  readonly sessions: FolderSessions;
  readonly choices: Choices;
  /** What to do where the agent lacks its model's key. */
  readonly login: string | undefined;
}

/** One session of the editor, as long as this process has it. */
export class AcpSession {
  #chosen: Chosen;
  #turn: Turn | undefined;
  /** Whether the agent remembers what was said. */
  #remembers: boolean;
  readonly #warned = new Set<string>();

  /** @param remembers false: an earlier process had this session. Then its agent is told what was said */
  constructor(
    readonly parts: SessionParts,
    chosen: Chosen,
    remembers: boolean,
  ) {
    this.#chosen = chosen;
    this.#remembers = remembers;
  }

  get id(): string {
    return this.parts.id;
  }

  get #client(): AmbitClient {
    return this.parts.sessions.client;
  }

  get #refusals(): RefusalContext {
    const { mcpServers = [] } = this.choices.template;
    return { login: this.parts.login, servers: mcpServers.map(({ name }) => name) };
  }

  get chosen(): Chosen {
    return this.#chosen;
  }

  get choices(): Choices {
    return this.parts.choices;
  }

  /** What the user chose, from the next turn on. @throws RequestError with every reason why no run could begin with it */
  async choose(changed: Partial<Chosen>): Promise<void> {
    await this.plan(changed);
    this.#chosen = { ...this.#chosen, ...changed };
  }

  /** Whether a run could begin with these choices. @throws RequestError with every gap and issue */
  async plan(changed: Partial<Chosen> = {}): Promise<object> {
    const request = withChoices(this.choices, { ...this.#chosen, ...changed });
    try {
      const { plan } = await this.#client.plan({
        ...request,
        sessionId: this.parts.runsSession,
        messages: [{ role: "user", content: "plan" }],
      });
      return plan;
    } catch (error) {
      throw requestErrorOf(error, this.#refusals);
    }
  }

  /** Shows earlier turns in the editor. */
  async show(turns: readonly StoredTurn[]): Promise<void> {
    for (const { prompt, updates } of turns) {
      for (const content of prompt) await this.#update({ sessionUpdate: "user_message_chunk", content });
      for (const update of updates) await this.#update(update);
    }
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
    await this.#client.closeSession(this.parts.runsSession).catch((error: unknown) => {
      // It had no run yet.
      if (!(error instanceof AmbitError) || error.status !== 404) throw error;
    });
  }

  async #take(turn: Turn, prompt: readonly ContentBlock[]): Promise<PromptResponse> {
    const { editor, folder } = this.parts;
    const blocks = await messageOf(prompt, folder.path, (path) => editor.readUnsaved(this.id, path));
    const working = await folder.beginRun(turn.signal);
    try {
      const { result, undo } = await this.#work(turn, working, blocks);
      this.#remembers = true;
      for (const { path, message: why } of result.warnings ?? []) await this.#warn(`${path}: ${why}`);
      if (result.stopReason === "paused" && !turn.isCancelled) await this.#note(unanswered);
      const { receipt } = result;
      return { ...endOf(result, turn), _meta: { ambit: { runId: turn.runId, undo, receipt } } };
    } catch (error) {
      // It isn't known what the agent remembers of a turn that failed.
      if (turn.hasBegun) this.#remembers = false;
      throw error;
    }
  }

  /** The turn's run, in the folder. */
  async #work(
    turn: Turn,
    working: UserFolderRun,
    blocks: readonly MessageBlock[],
  ): Promise<{ readonly result: RunResult; readonly undo: string | undefined }> {
    let end: UserFolderEnd | undefined;
    try {
      const request = inFolder(withChoices(this.choices, this.#chosen), working);
      const earlier = this.#remembers ? [] : earlierMessages(await this.parts.sessions.turns(this.id));
      const messages: Messages = [...earlier, { role: "user", content: [...blocks] }];
      const result = await this.#run(turn, { ...request, messages });
      end = await working.end();
      return { result, undo: end.undo };
    } finally {
      end ??= await working.end();
      for (const path of end.disarmed)
        await this.#note(`${path}: renamed, since the agent made it and git would run what it has.`);
    }
  }

  async #run(turn: Turn, request: RunRequest): Promise<RunResult> {
    const { editor, folder, runsSession } = this.parts;
    const { runId } = turn;
    turn.signal.throwIfAborted();
    const run = this.#client.run({ ...request, sessionId: runsSession, runId });
    turn.begin(run);
    const questions = new Questions();
    let state = noUpdates;
    try {
      for await (const event of run) {
        await turn.heard();
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
      if (!signal.aborted) await this.#client.answer(turn.runId, question.id, answer);
    } catch (error) {
      // The question is over: withdrawn, expired, or its run has ended.
      if (signal.aborted || (error instanceof AmbitError && isOver.has(error.status))) return;
      // The editor can't ask its user, so nothing is allowed that the user hasn't seen.
      await this.#client.answer(turn.runId, question.id, refusalOf(question)).catch(() => turn.cancel());
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
        if (decision.remembered !== undefined) this.#allow(turn, decision.remembered);
        return { approved: decision.approved };
      }
      case "user_input":
        return await editor.askInput(this.id, question.id, payload.input, signal);
      case "client_tool":
        return refusalOf(question);
    }
  }

  /** A rule of this session's later turns; in this one, the questions that it would have kept from being asked. */
  #allow(turn: Turn, tool: string): void {
    turn.allowed.add(tool);
    this.#chosen = { ...this.#chosen, allowed: [...new Set([...this.#chosen.allowed, tool])] };
  }

  /** Each warning once in a session. */
  async #warn(text: string): Promise<void> {
    if (this.#warned.has(text)) return;
    this.#warned.add(text);
    await this.#note(text);
  }

  async #note(text: string): Promise<void> {
    await this.#update(notice("warning", text, this.parts.editor.shows));
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

/** What is told to an agent that doesn't remember these turns: the latest of it. Pure. */
function earlierMessages(turns: readonly StoredTurn[]): Messages {
  const messages = turns.flatMap(
    ({ said: { user, agent } }): Messages => [
      { role: "user", content: user },
      ...(agent === "" ? [] : [{ role: "assistant" as const, content: agent }]),
    ],
  );
  let charactersLeft = maxEarlierCharacters;
  const latest = messages.slice(-maxEarlier).reverse();
  const tooMany = latest.findIndex(({ content = "" }) => {
    charactersLeft -= content.length;
    return charactersLeft < 0;
  });
  return latest.slice(0, tooMany === -1 ? undefined : tooMany).reverse();
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

  /** Whether the agent may have begun with it. */
  get hasBegun(): boolean {
    return this.#run !== undefined;
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
