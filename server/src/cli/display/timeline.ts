import {
  type AgentEvent,
  type AgentEventOf,
  type FailedResult,
  type FileChange,
  gapLine,
  issueLine,
  type RunResult,
} from "@ambit/core";
import { printable } from "../../logging/printable.js";
import { colors, columnsOf, counted, duration, padded, wrapped } from "./layout.js";
import { receiptLines } from "./receipt-lines.js";
import { shortId } from "./short-id.js";

/** Characters of a tool's arguments or result that are shown. */
const maxValueLength = 160;

/** Milliseconds from which on it is shown how long something took. */
const noticeableMs = 100;

interface GrowingText {
  readonly type: "message_delta" | "thought_delta";
  readonly text: string;
  readonly within: string;
}

interface ShownCall {
  readonly name: string;
  readonly begun: number;
  /** What stands before it. */
  readonly within: string;
}

/** A run as a readable timeline: one line per event, with its time since the start. */
export class Timeline {
  /** Unfinished texts by block. They are shown line by line. */
  readonly #growing = new Map<string, GrowingText>();
  readonly #calls = new Map<string, ShownCall>();
  /** The subagents' texts by block: what stands before each line. */
  readonly #nested = new Map<string, string>();

  /**
   * @param begun on the same clock as every later time, in milliseconds.
   * @param withEvidence whether the receipt shows how its guarantees were proven.
   * @param columns of the terminal, at which lines are wrapped. Default: those of stdout.
   */
  constructor(
    readonly begun: number,
    readonly withEvidence = false,
    readonly columns = columnsOf(process.stdout),
  ) {}

  /** The text to print for an event; empty for one that isn't shown. */
  event(event: AgentEvent, now: number): string {
    // Unfinished text is printed before the next event, also in the middle of a line.
    return event.type.endsWith("_delta")
      ? this.#event(event, now)
      : this.#flush(now) + this.#event(event, now);
  }

  #event(event: AgentEvent, now: number): string {
    const line = (label: string, text: string, color = colors.cyan) => this.#line(now, label, text, color);
    switch (event.type) {
      case "message":
        return line("says", this.#within(event) + event.text);
      case "thought":
        return line("thinks", this.#within(event) + event.text, colors.dim);
      case "message_start":
      case "thought_start":
        if (event.parentToolCallId !== undefined) this.#nested.set(event.id, this.#within(event));
        return "";
      case "message_end":
      case "thought_end":
        this.#nested.delete(event.id);
        return "";
      case "message_delta":
      case "thought_delta":
        return this.#grow(event, now);
      case "tool_call": {
        const name = event.name ?? "tool";
        const within = this.#within(event);
        this.#calls.set(event.id, { name, begun: now, within });
        return line("calls", `${within}${name} ${shortened(event.input ?? {})}`, colors.yellow);
      }
      case "tool_output":
        return "";
      case "tool_result": {
        const failed = event.isError === true;
        const label = event.denied === true ? "denied" : failed ? "failed" : "got";
        const { name, begun, within } = this.#calls.get(event.id) ?? { name: "tool", begun: now, within: "" };
        const took = now - begun < noticeableMs ? "" : ` (${duration(now - begun)})`;
        const output = label === "failed" ? withoutName(event.output, name) : event.output;
        const text = `${within}${name}${took}: ${shortened(output ?? "")}`;
        const changes = (event.changes ?? []).map((change) =>
          line("changes", changeLine(change), colors.green),
        );
        return line(label, text, failed ? colors.red : colors.green) + changes.join("");
      }
      case "interaction_request": {
        const { changes = [] } = event.payload ?? {};
        return [
          line("asks", questionText(event), colors.magenta),
          ...changes.map((change) => line("would", `change ${changeLine(change)}`, colors.magenta)),
        ].join("");
      }
      case "interaction_response":
        return line("answer", answerText(event), colors.magenta);
      case "interaction_expired":
        return line("expired", `${event.kind} ${shortId(event.id)}`, colors.magenta);
      case "boundary_decision": {
        const times = event.count > 1 ? ` (${event.count} times)` : "";
        const text = `${event.target}: ${event.failure ?? event.reason}${times}`;
        if (event.failure !== undefined) return line("failed", text, colors.red);
        return event.allowed ? line("allowed", text, colors.green) : line("refused", text, colors.red);
      }
      case "mode":
        return line("mode", event.mode);
      case "configuration":
        return line("sets", event.options.map(({ id, value }) => `${id}=${value}`).join(" "));
      case "data":
        if (event.name === "setup") return this.#setup(event.data, now);
        return event.name === "run" ? line("runs", runText(event.data), colors.bold) : "";
      case "file":
        return line("file", `${event.mediaType} ${shortened(event.url)}`);
      case "error":
        return line("error", event.message, colors.red);
      case "mcp_server_failed":
        return line("error", `MCP server '${event.serverName}': ${event.message}`, colors.red);
      case "turn":
      case "commands":
      case "usage":
      case "done":
        return "";
    }
  }

  result(result: RunResult | FailedResult, now: number): string {
    const line = (label: string, text: string, color = colors.cyan) => this.#line(now, label, text, color);
    const { failure, usage } = result;
    const tokens =
      usage === undefined
        ? ""
        : ` · ${counted(usage.input ?? 0, "token")} in, ${counted(usage.output ?? 0, "token")} out`;
    const ending = result.ok
      ? line("ends", `${result.stopReason ?? "well"}${tokens}`, colors.green)
      : line(
          "fails",
          failure?.gaps || failure?.issues ? (failure?.code ?? "") : (result.error ?? ""),
          colors.red,
        );
    const why = [...(failure?.gaps ?? []).map(gapLine), ...(failure?.issues ?? []).map(issueLine)];
    const warnings = (result.warnings ?? []).map(({ path = "", message }) => issueLine({ path, message }));
    const receipt = result.receipt === undefined ? [] : receiptLines(result.receipt, this.withEvidence);
    return [
      ending,
      ...why.map((text) => line("", text)),
      ...warnings.map((text) => line("warns", text, colors.yellow)),
      ...receipt.map(([label, text]) => line(label, text, colors.dim)),
    ].join("");
  }

  /** What prepares the environment: its commands, with what they print. */
  #setup(data: unknown, now: number): string {
    const { state, command, text, exitCode, durationMs } = Object(data);
    const line = (shown: string, color = colors.dim) => this.#line(now, "setup", shown, color);
    if (state === "waiting") return line("waits for another run that prepares the same");
    if (state === "started") return line(String(command), colors.yellow);
    if (state === "ended") return line(`exit code ${exitCode} after ${duration(Number(durationMs))}`);
    return String(text)
      .trimEnd()
      .split("\n")
      .map((one) => line(one))
      .join("");
  }

  /** What stands before the work of a subagent: the name of the call that began it. */
  #within({ parentToolCallId }: { readonly parentToolCallId?: string | undefined }): string {
    if (parentToolCallId === undefined) return "";
    return `${this.#calls.get(parentToolCallId)?.name ?? "subagent"} › `;
  }

  /** Shows whole lines as they arrive. An unfinished line waits for its end or the next event. */
  #grow(event: AgentEventOf<"message_delta" | "thought_delta">, now: number): string {
    const { text } = this.#growing.get(event.id) ?? { text: "" };
    const { type } = event;
    const within = this.#nested.get(event.id) ?? "";
    const lines = `${text}${event.delta}`.split("\n");
    this.#growing.set(event.id, { type, text: lines.pop() ?? "", within });
    return lines.map((whole) => this.#said({ type, text: whole, within }, now)).join("");
  }

  #flush(now: number): string {
    const begun = [...this.#growing.values()];
    this.#growing.clear();
    return begun.map((text) => this.#said(text, now)).join("");
  }

  #said({ type, text, within }: GrowingText, now: number): string {
    if (text === "") return "";
    return type === "message_delta"
      ? this.#line(now, "says", within + text, colors.cyan)
      : this.#line(now, "thinks", within + text, colors.dim);
  }

  #line(now: number, label: string, text: string, color: (text: string) => string): string {
    const time = `${((now - this.begun) / 1_000).toFixed(2).padStart(7)} s`;
    const prefix = `${colors.dim(time)}  ${color(padded(label, 9))}`;
    return `${wrapped(prefix, printable(text).trimEnd(), this.columns)}\n`;
  }
}

/** What runs: `gemini in local · run bc9269d7 · session s`. */
function runText(data: unknown): string {
  const { runId = "", harness = "", sandbox = "", sessionId } = Object(data);
  const session = sessionId === undefined ? "" : ` · session ${sessionId}`;
  return `${harness} in ${sandbox} · run ${shortId(String(runId))}${session}`;
}

/** What is asked, and the id that answers it. */
function questionText({ id, kind, payload = {} }: AgentEventOf<"interaction_request">): string {
  const { toolName = "the agent", input = {}, used } = payload;
  const what = {
    user_approval: used === undefined ? "approval of" : "more budget for",
    user_input: "input for",
    client_tool: "the client to run",
  }[kind];
  return `${what} ${toolName} ${shortened(input)} · ${shortId(id)}`;
}

/** What was answered: `write: allowed`. */
function answerText({ kind, payload = {} }: AgentEventOf<"interaction_response">): string {
  const {
    toolName = kind,
    approved,
    output,
    toolCallId: _,
    ...others
  }: Readonly<Record<string, unknown>> = payload;
  if (typeof approved === "boolean") return `${String(toolName)}: ${approved ? "allowed" : "denied"}`;
  // A client tool's output follows as the result of its call.
  if (output === undefined && Object.keys(others).length === 0) return String(toolName);
  return `${String(toolName)}: ${shortened(output ?? others)}`;
}

/** What went wrong, without the beginning that says again whose result it is. */
function withoutName(output: unknown, name: string): unknown {
  if (typeof output !== "string" || !output.startsWith(`Tool '${name}' `)) return output;
  return output.slice(`Tool '${name}' `.length).replace(/^failed: /, "");
}

function shortened(value: unknown): string {
  const text = (typeof value === "string" ? value : (JSON.stringify(value) ?? "")).trim();
  return text.length > maxValueLength ? `${text.slice(0, maxValueLength)}…` : text;
}

/** A change of a file in one line: `notes.md +3 -1`. Pure. */
export function changeLine({ path, oldText, newText, omitted }: FileChange): string {
  if (omitted !== undefined) return `${path} (${omitted.toLocaleString("en")} characters)`;
  const { added, removed } = lineChanges(linesOf(oldText ?? ""), linesOf(newText ?? ""));
  return `${path} ${oldText === undefined ? "new " : ""}+${added} -${removed}`;
}

/** Without the equal lines at the beginning and the end: exact for one edit, an upper bound for several. */
function lineChanges(before: readonly string[], after: readonly string[]) {
  const shared = Math.min(before.length, after.length);
  let first = 0;
  while (first < shared && before[first] === after[first]) first += 1;
  let last = 0;
  while (last < shared - first && before.at(-1 - last) === after.at(-1 - last)) last += 1;
  return { added: after.length - first - last, removed: before.length - first - last };
}

function linesOf(text: string): readonly string[] {
  if (text === "") return [];
  return (text.endsWith("\n") ? text.slice(0, -1) : text).split("\n");
}
