import type { AgentEvent } from "@ambit/core/contract";
import { done } from "@ambit/fakes/harness";
import { describe, expect, test } from "vitest";
import { createWorld } from "../fakes/world.js";

const secret = "sk-of-the-large-events";
const request = {
  toolCallback: { endpoint: "https://tools.example/call", authorization: `Bearer ${secret}` },
};

/** Runs an agent that sends these events, and counts the turns of the event loop until the run has ended. */
async function runOf(events: readonly AgentEvent[]) {
  const world = await createWorld({
    script: async function* () {
      yield* events;
      yield done;
    },
  });
  const run = await world.admit(request);
  let turns = 0;
  let running = true;
  const others = (async () => {
    for (; running; turns += 1) await new Promise((resolve) => setImmediate(resolve));
  })();
  const { events: received } = await world.tell(run);
  running = false;
  await others;
  return { received, turns };
}

describe("an event of an agent that is large", () => {
  test("leaves the event loop to others while its values are read", async () => {
    const input = { rows: Array.from({ length: 20_000 }, (_, at) => ({ at, text: `a ${secret}` })) };
    const { received, turns } = await runOf([
      { type: "tool_call", id: "a", name: "Query", input },
      { type: "tool_result", id: "a", output: input },
    ]);
    expect(received.find(({ type }) => type === "tool_call")).toMatchObject({
      input: { rows: expect.arrayContaining([{ at: 19_999, text: "a [redacted]" }]) },
    });
    expect(turns).toBeGreaterThan(40);
  });

  test("arrives in several pieces if it is a text, with the same content", async () => {
    // Of two units each, so that a piece could end between them.
    const text = `x${"😀".repeat(200_000)}${secret}`;
    const { received, turns } = await runOf([
      { type: "message_start", id: "m" },
      { type: "message_delta", id: "m", delta: text },
      { type: "message_end", id: "m" },
    ]);
    const deltas = received.flatMap((event) => (event.type === "message_delta" ? [event.delta] : []));
    expect(deltas.length).toBeGreaterThan(5);
    expect(deltas.every((delta) => !/[\uD800-\uDBFF]$/.test(delta))).toBe(true);
    expect(deltas.join("")).toBe(text.replace(secret, "[redacted]"));
    expect(turns).toBeGreaterThan(5);
  });
});
