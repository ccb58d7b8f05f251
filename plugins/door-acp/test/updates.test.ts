import type { SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import type { AgentEvent } from "@ambit/client";
import { expect, it } from "vitest";
import { coalesced, noUpdates, textSaid, type UpdateOptions, updatesOf } from "../src/updates.js";

const plain: UpdateOptions = { folder: "/srv/app", showsTerminals: false, showsNotices: false };
const able: UpdateOptions = { ...plain, showsTerminals: true, showsNotices: true };

/** All updates of these events, by default in an editor without further abilities. */
function mapped(events: readonly AgentEvent[], options = plain): SessionUpdate[] {
  let state = noUpdates;
  return events.flatMap((event) => {
    const [next, updates] = updatesOf(state, event, options);
    state = next;
    return updates;
  });
}

const text = (words: string) => ({ type: "text", text: words }) as const;
const said = (words: string) => ({ sessionUpdate: "agent_message_chunk", content: text(words) });
const thought = (words: string) => ({ sessionUpdate: "agent_thought_chunk", content: text(words) });
const call = { type: "tool_call", id: "c", name: "run", input: { command: "ls" } } as const;

/** Every type of event. An event that an editor can't show, or that is a question, has no update. */
const cases: { readonly [Type in AgentEvent["type"]]: readonly [AgentEvent, readonly object[]][] } = {
  turn: [[{ type: "turn", turnId: "t" }, []]],
  message: [[{ type: "message", text: "hi" }, [said("hi")]]],
  message_start: [[{ type: "message_start", id: "m" }, []]],
  message_delta: [[{ type: "message_delta", id: "m", delta: "hi" }, [said("hi")]]],
  message_end: [[{ type: "message_end", id: "m" }, []]],
  thought: [[{ type: "thought", text: "hm" }, [thought("hm")]]],
  thought_start: [[{ type: "thought_start", id: "m" }, []]],
  thought_delta: [[{ type: "thought_delta", id: "m", delta: "hm" }, [thought("hm")]]],
  thought_end: [[{ type: "thought_end", id: "m" }, []]],
  tool_call: [
    [
      call,
      [{ sessionUpdate: "tool_call", toolCallId: "c", title: "ls", kind: "execute", status: "in_progress" }],
    ],
    [
      {
        type: "tool_call",
        id: "c",
        name: "Edit",
        input: { file_path: "/workspace/src/a.ts" },
        locations: [{ path: "/workspace/src/a.ts", line: 3 }],
      },
      [{ title: "Edit src/a.ts", kind: "edit", locations: [{ path: "/srv/app/src/a.ts", line: 3 }] }],
    ],
    [{ type: "tool_call", id: "c", name: "lookup", input: { key: 1 } }, [{ title: "lookup", kind: "other" }]],
    [{ type: "tool_call", id: "c" }, [{ title: "tool", kind: "other" }]],
  ],
  tool_output: [
    [
      { type: "tool_output", id: "c", delta: "a\n" },
      [{ sessionUpdate: "tool_call_update", toolCallId: "c", content: [{ content: text("a\n") }] }],
    ],
  ],
  tool_result: [
    [
      { type: "tool_result", id: "c", output: "done" },
      [{ status: "completed", content: [{ content: text("done") }] }],
    ],
    [{ type: "tool_result", id: "c", output: { a: 1 } }, [{ content: [{ content: text('{"a":1}') }] }]],
    [{ type: "tool_result", id: "c", output: "no", isError: true, denied: true }, [{ status: "failed" }]],
    [
      { type: "tool_result", id: "c", output: "ok", changes: [{ path: "/workspace/a", newText: "x" }] },
      [{ content: [{ type: "diff", path: "/srv/app/a", oldText: null, newText: "x" }] }],
    ],
    [
      { type: "tool_result", id: "c", changes: [{ path: "a", omitted: 9 }] },
      [{ content: [{ content: text("/srv/app/a was changed: 9 characters, too many to show here.") }] }],
    ],
  ],
  interaction_request: [[{ type: "interaction_request", id: "ask_1", kind: "user_approval" }, []]],
  interaction_response: [[{ type: "interaction_response", id: "ask_1", kind: "user_approval" }, []]],
  interaction_expired: [[{ type: "interaction_expired", id: "ask_1", kind: "user_approval" }, []]],
  boundary_decision: [
    [{ type: "boundary_decision", target: "a:443", allowed: true, reason: "listed", count: 1 }, []],
    [
      { type: "boundary_decision", target: "a:443", allowed: false, reason: "not listed", count: 2 },
      [
        {
          toolCallId: "boundary:a:443",
          title: "The boundary refused a:443 (not listed), 2 times",
          status: "failed",
        },
      ],
    ],
    [
      {
        type: "boundary_decision",
        target: "a:443",
        allowed: true,
        reason: "listed",
        failure: "no route",
        count: 1,
      },
      [{ title: "The connection to a:443 failed: no route" }],
    ],
  ],
  commands: [
    [
      {
        type: "commands",
        commands: [{ name: "test", description: "runs them", hint: "which" }, { name: "x" }],
      },
      [
        {
          sessionUpdate: "available_commands_update",
          availableCommands: [
            { name: "test", description: "runs them", input: { hint: "which" } },
            { name: "x", description: "" },
          ],
        },
      ],
    ],
  ],
  mode: [[{ type: "mode", mode: "plan" }, []]],
  configuration: [[{ type: "configuration", options: [] }, []]],
  data: [
    [
      {
        type: "data",
        name: "plan",
        data: { entries: [{ content: "a", status: "completed" }, { content: "b" }] },
      },
      [
        {
          sessionUpdate: "plan",
          entries: [
            { content: "a", status: "completed", priority: "medium" },
            { content: "b", status: "pending", priority: "medium" },
          ],
        },
      ],
    ],
    [
      { type: "data", name: "notice", data: { title: "slow", severity: "warning" } },
      [said("\n\n> slow\n\n")],
    ],
    [{ type: "data", name: "truncated", data: {} }, [{ sessionUpdate: "agent_message_chunk" }]],
    [{ type: "data", name: "preview", data: { url: "https://x" } }, [said("\n\nhttps://x\n\n")]],
    [{ type: "data", name: "acp.unknown", data: {} }, []],
  ],
  file: [
    [
      { type: "file", url: "data:image/png;base64,AAAA", mediaType: "image/png" },
      [{ content: { type: "image", data: "AAAA", mimeType: "image/png" } }],
    ],
    [
      { type: "file", url: "https://x/a.pdf", mediaType: "application/pdf" },
      [{ content: { name: "a.pdf" } }],
    ],
    [{ type: "file", url: "/runs/r/files/a", mediaType: "text/plain", path: "a" }, []],
  ],
  usage: [[{ type: "usage", input: 1 }, []]],
  mcp_server_failed: [
    [
      { type: "mcp_server_failed", serverName: "lab", reasonCode: "handshake_rejected", message: "401" },
      [{ title: "The MCP server lab failed: 401", status: "failed" }],
    ],
  ],
  error: [[{ type: "error", message: "boom" }, []]],
  done: [[{ type: "done", stopReason: "end_turn" }, []]],
};

it.each(Object.entries(cases))("shows %s", (_type, examples) => {
  for (const [event, updates] of examples) expect(mapped([event])).toMatchObject(updates);
});

it("shows a command's output as a terminal's, where the editor can", () => {
  const events = [
    call,
    { type: "tool_output", id: "c", delta: "a" },
    { type: "tool_output", id: "c", delta: "b" },
    { type: "tool_result", id: "c", output: "ab" },
  ] satisfies AgentEvent[];
  expect(mapped(events, able)).toMatchObject([
    { content: [{ type: "terminal", terminalId: "c" }], _meta: { terminal_info: { terminal_id: "c" } } },
    { _meta: { terminal_output: { terminal_id: "c", data: "a" } } },
    { _meta: { terminal_output: { terminal_id: "c", data: "b" } } },
    { status: "completed", _meta: { terminal_exit: { terminal_id: "c" } } },
  ]);
  // Elsewhere each piece replaces the one before.
  expect(mapped(events)[2]).toMatchObject({ content: [{ content: text("ab") }] });
  expect(mapped([call, { type: "tool_result", id: "c", output: "all" }], able)[1]).toMatchObject({
    _meta: { terminal_output: { data: "all" } },
  });
});

it("ends the calls that a run left open", () => {
  expect(mapped([call, { type: "done", stopReason: "paused" }])[1]).toEqual({
    sessionUpdate: "tool_call_update",
    toolCallId: "c",
    status: "failed",
  });
});

it("shows a notice as one, where the editor can", () => {
  const notice = { type: "data", name: "notice", data: { title: "slow", severity: "error" } } as const;
  expect(mapped([notice], able)).toEqual([{ sessionUpdate: "notice", severity: "error", title: "slow" }]);
});

it("keeps neighbouring texts as one, and no pieces of outputs", () => {
  const delta = (words: string) => ({ type: "message_delta", id: "m", delta: words }) as const;
  const output = { type: "tool_output", id: "c", delta: "a" } as const;
  const updates = mapped([
    delta("a"),
    delta("b"),
    call,
    output,
    { type: "tool_result", id: "c" },
    delta("c"),
  ]);
  const kept = coalesced(updates);
  expect(kept).toMatchObject([said("ab"), { title: "ls" }, { status: "completed" }, said("c")]);
  expect(textSaid(kept)).toBe("abc");
});
