import type { JsonObject } from "../answer.js";
import type { ResolvedCall } from "../tools.js";
import { type Frame, freshId, inTwoPieces, type Reply } from "./model-api.js";

/** An item of a response's `output`, complete. */
export type OutputItem =
  | { readonly type: "reasoning"; readonly id: string; readonly summary: readonly SummaryText[] }
  | {
      readonly type: "message";
      readonly id: string;
      readonly role: "assistant";
      readonly status: string;
      readonly content: readonly OutputText[];
    }
  | {
      readonly type: "function_call";
      readonly id: string;
      readonly call_id: string;
      readonly name: string;
      readonly namespace?: string;
      readonly arguments: string;
      readonly status: string;
    }
  | {
      readonly type: "custom_tool_call";
      readonly id: string;
      readonly call_id: string;
      readonly name: string;
      readonly input: string;
      readonly status: string;
    }
  | {
      readonly type: "local_shell_call";
      readonly id: string;
      readonly call_id: string;
      readonly status: string;
      readonly action: { readonly type: "exec"; readonly command: unknown; readonly env: JsonObject };
    }
  | {
      readonly type: "tool_search_call";
      readonly id: string;
      readonly call_id: string;
      readonly status: string;
      /** The agent searches, not the provider. */
      readonly execution: "client";
      readonly arguments: JsonObject;
    };
type SummaryText = { readonly type: "summary_text"; readonly text: string };
type OutputText = {
  readonly type: "output_text";
  readonly text: string;
  readonly annotations: readonly never[];
};

/** A stream event without its sequence number. */
export interface ItemEvent {
  readonly type: string;
  readonly pauseMs?: number;
  readonly tail?: Frame["tail"];
  readonly [field: string]: unknown;
}

export function outputItems(reply: Reply): readonly OutputItem[] {
  const items: OutputItem[] = [];
  if (reply.thought !== "") {
    items.push({
      type: "reasoning",
      id: freshId("rs_"),
      summary: [{ type: "summary_text", text: reply.thought }],
    });
  }
  const text = reply.chunks.join("");
  if (text !== "") {
    const content = [{ type: "output_text" as const, text, annotations: [] }];
    items.push({ type: "message", id: freshId("msg_"), role: "assistant", status: "completed", content });
  }
  return [...items, ...reply.calls.map(callItem)];
}

function callItem({ tool, input }: ResolvedCall): OutputItem {
  const call_id = freshId("call_");
  const status = "completed";
  switch (tool.form) {
    case "local_shell": {
      const action = { type: "exec" as const, command: input.command, env: {} };
      return { type: "local_shell_call", id: freshId("lsh_"), call_id, status, action };
    }
    case "tool_search": {
      const id = freshId("tsc_");
      return { type: "tool_search_call", id, call_id, status, execution: "client", arguments: input };
    }
    case "custom": {
      const text = typeof input.input === "string" ? input.input : JSON.stringify(input);
      return { type: "custom_tool_call", id: freshId("ctc_"), call_id, name: tool.name, input: text, status };
    }
    case "function":
      return {
        type: "function_call",
        id: freshId("fc_"),
        call_id,
        name: tool.name,
        ...(tool.namespace === undefined ? {} : { namespace: tool.namespace }),
        arguments: JSON.stringify(input),
        status,
      };
  }
}

/** The events of one item: added, its content piece by piece, done. */
export function* itemFrames(item: OutputItem, output_index: number, reply: Reply): Iterable<ItemEvent> {
  const place = { item_id: item.id, output_index };
  yield { type: "response.output_item.added", output_index, item: startOf(item) };
  switch (item.type) {
    case "reasoning": {
      const [part] = item.summary;
      const here = { ...place, summary_index: 0 };
      yield { type: "response.reasoning_summary_part.added", ...here, part: { ...part, text: "" } };
      yield { type: "response.reasoning_summary_text.delta", ...here, delta: reply.thought };
      yield { type: "response.reasoning_summary_text.done", ...here, text: reply.thought };
      yield { type: "response.reasoning_summary_part.done", ...here, part };
      break;
    }
    case "message": {
      const [part] = item.content;
      const here = { ...place, content_index: 0 };
      yield { type: "response.content_part.added", ...here, part: { ...part, text: "" } };
      for (const delta of reply.chunks) {
        yield { type: "response.output_text.delta", pauseMs: reply.pauseMs, ...here, delta };
      }
      yield { type: "response.output_text.done", ...here, text: part?.text };
      yield { type: "response.content_part.done", ...here, part };
      break;
    }
    case "function_call":
      for (const [at, delta] of inTwoPieces(item.arguments).entries()) {
        const sent = { type: "response.function_call_arguments.delta", ...place, delta };
        yield at > 0 ? { ...sent, tail: "rest" } : sent;
      }
      yield {
        type: "response.function_call_arguments.done",
        ...place,
        arguments: item.arguments,
        tail: "rest",
      };
      yield { type: "response.output_item.done", output_index, item, tail: "rest" };
      return;
    case "custom_tool_call":
      yield { type: "response.custom_tool_call_input.delta", ...place, delta: item.input };
      yield { type: "response.custom_tool_call_input.done", ...place, input: item.input };
      break;
    case "local_shell_call":
    case "tool_search_call":
      break;
  }
  yield { type: "response.output_item.done", output_index, item };
}

function startOf(item: OutputItem): object {
  switch (item.type) {
    case "reasoning":
      return { ...item, summary: [] };
    case "message":
      return { ...item, status: "in_progress", content: [] };
    case "function_call":
      return { ...item, status: "in_progress", arguments: "" };
    case "custom_tool_call":
      return { ...item, status: "in_progress", input: "" };
    case "local_shell_call":
    case "tool_search_call":
      return { ...item, status: "in_progress" };
  }
}
