import { type AgentEvent, type FailedResult, gapLine, issueLine, type RunResult } from "@ambit/core";
import colors from "picocolors";
import { printable } from "../logging/printable.js";
import { receiptLines } from "./receipt-lines.js";

/** Characters of a tool's arguments or result that are shown. */
const longestValue = 160;

/** A run as people read it: one line per happening, with its time since the start. Pure text in, pure text out. */
export class Timeline {
  /** Texts that are still growing, by block: shown line by line. */
  readonly #growing = new Map<string, string>();
  #toolNames = new Map<string, string>();

  /** @param begun in the same milliseconds as every later time. */
  constructor(readonly begun: number) {}

  /** What to print for an event; empty for one that shows nothing. */
  event(event: AgentEvent, now: number): string {
    const line = (label: string, text: string, color = colors.cyan) => this.#line(now, label, text, color);
    switch (event.type) {
      case "message":
        return line("says", event.text);
      case "thought":
        return line("thinks", event.text, colors.dim);
      case "message_start":
      case "thought_start":
        this.#growing.set(event.id, "");
        return "";
      case "message_delta":
        return this.#grow(event.id, event.delta, (text) => line("says", text));
      case "thought_delta":
        return this.#grow(event.id, event.delta, (text) => line("thinks", text, colors.dim));
      case "message_end":
        return this.#rest(event.id, (text) => line("says", text));
      case "thought_end":
        return this.#rest(event.id, (text) => line("thinks", text, colors.dim));
      case "tool_call":
        this.#toolNames.set(event.id, event.name ?? "tool");
        return line("calls", `${event.name ?? "tool"} ${shortened(event.input ?? {})}`, colors.yellow);
      case "tool_result": {
        const failed = event.isError === true;
        const label = event.denied === true ? "denied" : failed ? "failed" : "got";
        const text = `${this.#toolNames.get(event.id) ?? "tool"}: ${shortened(event.output ?? "")}`;
        return line(label, text, failed ? colors.red : colors.green);
      }
      case "interaction_request":
        return line("asks", `${event.kind} ${shortened(event.payload ?? {})}`, colors.magenta);
      case "interaction_response":
        return line("answer", `${event.kind} ${shortened(event.payload ?? {})}`, colors.magenta);
      case "boundary_decision": {
        const times = event.count > 1 ? ` (${event.count} times)` : "";
        const text = `${event.target}: ${event.reason}${times}`;
        return event.allowed ? line("allowed", text, colors.green) : line("refused", text, colors.red);
      }
      case "data":
        return event.name === "run" ? line("runs", shortened(event.data), colors.bold) : "";
      case "file":
        return line("file", `${event.mediaType} ${shortened(event.url)}`);
      case "error":
        return line("error", event.message, colors.red);
      case "usage":
      case "done":
        return "";
    }
  }

  result(result: RunResult | FailedResult, now: number): string {
    const line = (label: string, text: string, color = colors.cyan) => this.#line(now, label, text, color);
    const { failure, usage } = result;
    const tokens =
      usage === undefined ? "" : ` · ${usage.input ?? 0} tokens in, ${usage.output ?? 0} tokens out`;
    const ending = result.ok
      ? line("ends", `${result.stopReason ?? "well"}${tokens}`, colors.green)
      : line(
          "fails",
          failure?.gaps || failure?.issues ? (failure?.code ?? "") : (result.error ?? ""),
          colors.red,
        );
    const why = [...(failure?.gaps ?? []).map(gapLine), ...(failure?.issues ?? []).map(issueLine)];
    const receipt = result.receipt === undefined ? [] : receiptLines(result.receipt);
    return [
      ending,
      ...why.map((text) => line("", text, colors.red)),
      ...receipt.map(([label, text]) => line(label, text, colors.dim)),
    ].join("");
  }

  /** Whole lines are shown as they come; what is begun waits for its end. */
  #grow(id: string, delta: string, show: (text: string) => string): string {
    const lines = `${this.#growing.get(id) ?? ""}${delta}`.split("\n");
    this.#growing.set(id, lines.pop() ?? "");
    return lines
      .filter((text) => text !== "")
      .map(show)
      .join("");
  }

  #rest(id: string, show: (text: string) => string): string {
    const text = this.#growing.get(id) ?? "";
    this.#growing.delete(id);
    return text === "" ? "" : show(text);
  }

  #line(now: number, label: string, text: string, color: (text: string) => string): string {
    const time = `${((now - this.begun) / 1_000).toFixed(2).padStart(7)} s`;
    const indented = printable(text)
      .trimEnd()
      .replaceAll("\n", `\n${" ".repeat(20)}`);
    return `${colors.dim(time)}  ${color(label.padEnd(9))}${indented}\n`;
  }
}

function shortened(value: unknown): string {
  const text = (typeof value === "string" ? value : (JSON.stringify(value) ?? "")).trim();
  return text.length > longestValue ? `${text.slice(0, longestValue)}…` : text;
}
