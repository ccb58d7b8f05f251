import type { AgentEvent } from "@ambit/core/contract";
import { runResultSchema } from "@ambit/core/contract";
import { done } from "@ambit/fakes/harness";
import { describe, expect, test } from "vitest";
import { createWorld } from "../../fakes/world.js";

const max = 2_000;

/** What a result of at most `max` characters holds of these events. */
async function resultOf(events: readonly AgentEvent[], keepsEvents = true) {
  const world = await createWorld({
    limits: { resultCharacters: max },
    script: async function* () {
      yield* events;
      yield done;
    },
  });
  const recorded = await world.run({}, keepsEvents);
  expect(runResultSchema.safeParse(JSON.parse(JSON.stringify(recorded.result))).error).toBeUndefined();
  expect(recorded.result).toMatchObject({ ok: true, stopReason: "end_turn" });
  return { ...recorded.result, streamed: recorded.events };
}

const text = (length: number, id = "m"): AgentEvent[] => [
  { type: "message_start", id },
  ...Array.from({ length: length / 10 }, () => ({ type: "message_delta", id, delta: "0123456789" }) as const),
  { type: "message_end", id },
];

describe("a result is limited, and reports what is missing", () => {
  test("a text: its beginning, and the number of omitted characters", async () => {
    const { output = "", events } = await resultOf(text(10_000));
    const [, said = "", missing] =
      /^(\d+)\n\n\[(\d+) more characters: a result has at most 2000/.exec(output) ?? [];
    expect(said.length).toBeGreaterThan(max / 2);
    expect(said.length + Number(missing)).toBe(10_000);
    expect(events.slice(1)).toEqual([
      { type: "data", name: "truncated", data: { events: 0, characters: Number(missing) } },
      { type: "message", text: said },
      done,
    ]);
  });

  test("events: the first ones, and those that a caller needs to continue", async () => {
    const results = Array.from(
      { length: 1_000 },
      (_, index): AgentEvent => ({ type: "tool_result", id: String(index), output: "a result" }),
    );
    const { events } = await resultOf(results);
    const gap = events.findIndex((event) => event.type === "data" && event.name === "truncated");
    const recorded = events.filter(({ type }) => type === "tool_result").length;
    expect(recorded).toBeGreaterThan(10);
    expect(events.slice(gap)).toEqual([
      { type: "data", name: "truncated", data: { events: 1_000 - recorded, characters: 0 } },
      done,
    ]);
  });

  test("small values: counted as what they take in memory, not by their JSON", async () => {
    const output = Array.from({ length: 200 }, () => ({}));
    expect(JSON.stringify(output).length).toBeLessThan(max / 2);
    const { events } = await resultOf([{ type: "tool_result", id: "a", output }]);
    expect(events).toContainEqual({ type: "data", name: "truncated", data: { events: 1, characters: 0 } });
  });

  test("many texts: none is kept over the limit", async () => {
    const { events, output = "" } = await resultOf(Array.from({ length: 5_000 }, () => text(10)).flat());
    expect(JSON.stringify(events).length + output.length).toBeLessThan(3 * max);
  });

  test("not through the middle of a character", async () => {
    const { output = "" } = await resultOf([{ type: "message", text: `x${"😀".repeat(5_000)}` }]);
    expect(output).not.toMatch(/[\uD800-\uDFFF]/u);
  });

  test("a stream contains everything; its thoughts don't count towards the result's limit", async () => {
    const thought: AgentEvent[] = [
      { type: "thought_start", id: "t" },
      { type: "thought_delta", id: "t", delta: "x".repeat(10_000) },
      { type: "thought_end", id: "t" },
    ];
    const { output = "", streamed } = await resultOf(
      [...thought, ...text(1_000), ...text(5_000, "n")],
      false,
    );
    expect(streamed.filter(({ type }) => type === "message_delta")).toHaveLength(600);
    expect(output).toMatch(/^(0123456789){100}\n\n(0123456789)+\d*\n\n\[\d+ more characters/);
  });
});
