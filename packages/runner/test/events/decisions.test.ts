import type { AgentEvent } from "@ambit/core/contract";
import { describe, expect, test } from "vitest";
import { Decisions } from "../../src/events/run-events.js";

describe("Decisions", () => {
  const decision = (target: string) => ({ target, allowed: false, reason: "not listed" });

  test("consecutive repeats are one event", () => {
    const recorded: AgentEvent[] = [];
    const decisions = new Decisions((event) => {
      recorded.push(event);
      return undefined;
    });
    for (const target of ["a", "a", "b", "a"]) decisions.record(decision(target));
    decisions.flush();
    expect(recorded).toMatchObject([
      { target: "a", count: 2 },
      { target: "b", count: 1 },
      { target: "a", count: 1 },
    ]);
    expect(decisions).toMatchObject({ allowed: 0, refused: 4 });
  });

  test("a recorded decision becomes an event by itself", async () => {
    const recorded: AgentEvent[] = [];
    const decisions = new Decisions((event) => {
      recorded.push(event);
      return undefined;
    }, 5);
    decisions.record(decision("a"));
    await expect.poll(() => recorded).toHaveLength(1);
  });
});
