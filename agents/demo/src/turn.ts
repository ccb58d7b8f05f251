import { randomUUID } from "node:crypto";
import type {
  AgentContext,
  ContentBlock,
  RequestPermissionOutcome,
  RequestPermissionRequest,
  SessionUpdate,
  ToolCallContent,
  ToolCallLocation,
  ToolKind,
  Usage,
} from "@agentclientprotocol/sdk/unstable";
import { failureText } from "./failure-text.js";
import type { StopReason } from "./grammar.js";
import type { DemoSession } from "./session.js";

/** The four options that Claude also offers; the id is the kind. */
const permissionOptions = [
  { optionId: "allow_once", name: "Allow once", kind: "allow_once" },
  { optionId: "allow_always", name: "Always allow", kind: "allow_always" },
  { optionId: "reject_once", name: "Reject", kind: "reject_once" },
  { optionId: "reject_always", name: "Always reject", kind: "reject_always" },
] as const;

/** A tool call in its first message to the client. */
export interface ToolCallPlan {
  readonly title: string;
  readonly name?: string;
  readonly kind: ToolKind;
  readonly rawInput: Readonly<Record<string, unknown>>;
  readonly locations?: ToolCallLocation[];
  /**
   * `remembering` keeps an "always" answer for this title until the session ends; `always` asks each time; `as-told`
   * follows the agent's start option, for its own tools.
   */
  readonly ask: "never" | "as-told" | "remembering" | "always";
}

/** The outcome of a tool call. `text` is shown when the session is loaded. */
export interface ToolCallReport {
  readonly failed: boolean;
  readonly text: string;
  readonly content?: ToolCallContent[];
  readonly rawOutput?: unknown;
}

/** One running `session/prompt`: everything that an instruction may send to the client. */
export class DemoTurn {
  readonly session: DemoSession;
  readonly prompt: readonly ContentBlock[];
  /** Aborts on `session/cancel`, `session/close`, `$/cancel_request` and when the connection ends. */
  readonly signal: AbortSignal;
  /** Set by `stop`; ends the script. */
  stopReason: StopReason | undefined;
  /** Set by `usage`. */
  reportedUsage: Usage | undefined;
  /** What is sent once the turn has been answered. */
  readonly afterAnswer: (() => Promise<void>)[] = [];
  readonly #client: AgentContext;
  #wordsSaid = 0;
  #hasSpoken = false;
  #said = "";

  /**
   * @param asksFirst whether permission is asked before each of the agent's own tools.
   * @param parentCall the call that began the subagent whose work this is. Default: it is the agent's own.
   */
  constructor(
    session: DemoSession,
    prompt: readonly ContentBlock[],
    client: AgentContext,
    signal: AbortSignal,
    readonly asksFirst: boolean,
    readonly parentCall?: string,
  ) {
    this.session = session;
    this.prompt = prompt;
    this.signal = signal;
    this.#client = client;
  }

  /** Words count as tokens unless the script sets the usage. */
  usage(): Usage {
    if (this.reportedUsage !== undefined) return this.reportedUsage;
    const inputTokens = wordsIn(promptText(this.prompt));
    return { inputTokens, outputTokens: this.#wordsSaid, totalTokens: inputTokens + this.#wordsSaid };
  }

  /** The part of this turn in which a subagent works. */
  ofSubagent(parentCall: string): DemoTurn {
    return new DemoTurn(this.session, this.prompt, this.#client, this.signal, this.asksFirst, parentCall);
  }

  /** What the subagent has said so far. */
  get said(): string {
    return this.#said;
  }

  async update(update: SessionUpdate): Promise<void> {
    const { parentCall: parentToolCallId } = this;
    const nested = parentToolCallId === undefined ? update : { ...update, _meta: { parentToolCallId } };
    await this.#client.notify("session/update", { sessionId: this.session.id, update: nested });
  }

  /** Sends exactly `text`, as one chunk. */
  async say(text: string): Promise<void> {
    this.#hasSpoken = true;
    this.#wordsSaid += wordsIn(text);
    if (this.parentCall === undefined) this.session.history.add({ kind: "message", text });
    else this.#said += text;
    await this.update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
  }

  /** Sends `text` on a new line below the turn's earlier text. */
  async sayLine(text: string): Promise<void> {
    await this.say(this.#hasSpoken ? `\n${text}` : text);
  }

  async think(text: string): Promise<void> {
    this.session.history.add({ kind: "thought", text });
    await this.update({ sessionUpdate: "agent_thought_chunk", content: { type: "text", text } });
  }

  /**
   * Announces a tool call, asks for permission if needed, does the work and reports the outcome. An error of `work` is
   * a failed call; the script continues.
   *
   * @returns the chosen option, `cancelled`, or `undefined` if permission wasn't asked.
   */
  async callTool(
    plan: ToolCallPlan,
    work: (toolCallId: string) => Promise<ToolCallReport>,
  ): Promise<string | undefined> {
    const { ask: wanted, ...described } = plan;
    const ask = wanted !== "as-told" ? wanted : this.asksFirst ? "remembering" : "never";
    const toolCallId = `demo-${randomUUID()}`;
    await this.update({ sessionUpdate: "tool_call", toolCallId, status: "pending", ...described });
    let chosen: string | undefined;
    let report: ToolCallReport;
    try {
      chosen = ask === "never" ? undefined : await this.#permission(toolCallId, { ...plan, ask });
      if (chosen === undefined || chosen.startsWith("allow")) {
        await this.update({ sessionUpdate: "tool_call_update", toolCallId, status: "in_progress" });
        report = await work(toolCallId);
      } else {
        report = { failed: true, text: "rejected" };
      }
    } catch (error) {
      report = { failed: true, text: this.signal.aborted ? "cancelled" : failureText(error) };
    }
    const { failed, text, rawOutput } = report;
    this.session.history.add({ kind: "tool", toolCallId, title: plan.title, failed, text });
    await this.update({
      sessionUpdate: "tool_call_update",
      toolCallId,
      status: failed ? "failed" : "completed",
      content: report.content ?? [textContent(text)],
      rawOutput,
    });
    return chosen;
  }

  async #permission(toolCallId: string, plan: ToolCallPlan): Promise<string> {
    const remembered = plan.ask === "remembering" ? this.session.answers.get(plan.title) : undefined;
    if (remembered !== undefined) return remembered;
    const { title, name, kind, rawInput } = plan;
    const question: RequestPermissionRequest = {
      sessionId: this.session.id,
      toolCall: {
        toolCallId,
        title,
        kind,
        rawInput,
        status: "pending",
        name,
      },
      options: [...permissionOptions],
    };
    const { outcome } = await this.orAbort(this.#client.request("session/request_permission", question));
    const chosen = chosenOption(outcome);
    if (chosen.endsWith("always")) this.session.answers.set(plan.title, chosen);
    return chosen;
  }

  /** Waits for `promise`, but no longer than until the turn is cancelled; then rejects. */
  async orAbort<T>(promise: Promise<T>): Promise<T> {
    const { signal } = this;
    if (signal.aborted) throw signal.reason;
    let stop = () => {};
    const aborted = new Promise<never>((_, reject) => {
      stop = () => reject(signal.reason);
      signal.addEventListener("abort", stop);
    });
    try {
      return await Promise.race([promise, aborted]);
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }
}

/** The text of a prompt, with one block per line. */
export function promptText(prompt: readonly ContentBlock[]): string {
  return prompt.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
}

function textContent(text: string): ToolCallContent {
  return { type: "content", content: { type: "text", text } };
}

function chosenOption(outcome: RequestPermissionOutcome): string {
  if (outcome.outcome === "cancelled") return "cancelled";
  const { optionId } = outcome;
  if (!permissionOptions.some((option) => option.optionId === optionId)) {
    throw new Error(`the client chose '${optionId}', which was not offered`);
  }
  return optionId;
}

function wordsIn(text: string): number {
  return text.split(/\s+/).filter((word) => word !== "").length;
}
