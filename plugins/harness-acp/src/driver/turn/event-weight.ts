import type { AgentEvent } from "@ambit/core/plugin";

/** About how many characters an event keeps in memory, in addition to its tool call or data. */
export function eventWeight(event: AgentEvent): number {
  switch (event.type) {
    case "message_delta":
    case "thought_delta":
    case "tool_output":
      return 64 + event.delta.length;
    case "file":
      return 64 + event.url.length;
    case "turn":
    case "message":
    case "thought":
    case "message_start":
    case "message_end":
    case "thought_start":
    case "thought_end":
    case "tool_call":
    case "tool_result":
    case "interaction_request":
    case "interaction_response":
    case "interaction_expired":
    case "boundary_decision":
    case "mode":
    case "commands":
    case "configuration":
    case "data":
    case "usage":
    case "mcp_server_failed":
    case "error":
    case "done":
      return 256;
  }
}

/** A piece of text, which may be dropped after a turn was cancelled. */
export function isDelta(event: AgentEvent): boolean {
  return event.type === "message_delta" || event.type === "thought_delta" || event.type === "tool_output";
}
