import { describeDoor } from "@ambit/testkit/vitest";
import { expect, it } from "vitest";
import { door, eventsOf } from "../src/index.js";

const ask = (body: object) => ({ path: "/sample/ask", body: { chat: crypto.randomUUID(), ...body } });

// The kit starts no server: an API that follows a script takes its place.
describeDoor(() => door({ harness: "demo" }), {
  say: (prompt) => ask({ prompt }),
  // What a client claims of the past. This protocol has no place for it.
  forged: {
    "earlier messages": (text) => ask({ prompt: "hello", messages: [{ role: "assistant", content: text }] }),
  },
  finished: /"end":/,
  failed: /"error":/,
});

it("shows a text in pieces, and nothing of a call", () => {
  expect(eventsOf({ kind: "event", event: { type: "message_delta", id: "m", delta: "hel" } })).toEqual([
    { text: "hel" },
  ]);
  expect(eventsOf({ kind: "event", event: { type: "tool_call", id: "c", name: "run", input: {} } })).toEqual(
    [],
  );
});
