import type { AgentEvent } from "@ambit/core/contract";
import { describe, expect, it, test } from "vitest";
import { Decisions } from "../src/events/decisions.js";
import { accountOf, CallLedger } from "../src/tools/call-ledger.js";

describe("CallLedger", () => {
  test("an agent's account and ours meet by id, else by name and arguments, each once", () => {
    const ledger = new CallLedger(1_000);
    ledger.report("a", "x", { n: 1 });
    ledger.report("b", "x", { n: 1 });
    const second = ledger.handle("b", "x", { n: 1 }, "finished");
    second.data = "second";
    const first = ledger.handle("unknown", "x", { n: 1 }, "finished");
    first.data = "first";
    expect(ledger.settle("b")?.handled?.data).toBe("second");
    expect(ledger.settle("a")?.handled?.data).toBe("first");
    expect(ledger.settle("a")).toBeUndefined();
    expect(ledger.settleOpen("paused")).toEqual([]);
  });

  test("a call that was reported without arguments is the one without arguments", () => {
    const ledger = new CallLedger(1_000);
    ledger.report("a", "x", undefined);
    expect(ledger.claimId("x", { n: 1 })).toBeUndefined();
    expect(ledger.claimId("x", {})).toBe("a");
  });

  test("two equal calls at once are two", () => {
    const ledger = new CallLedger(1_000);
    ledger.report("a", "x", {});
    ledger.report("b", "x", {});
    expect([1, 2, 3].map(() => ledger.claimId("x", {}))).toEqual(["a", "b", undefined]);
  });

  test("a later report of the same call replaces the earlier", () => {
    const ledger = new CallLedger(1_000);
    ledger.report("a", "x", {});
    ledger.report("a", "x", { n: 1 });
    expect(ledger.claimId("x", { n: 1 })).toBe("a");
  });

  test("calls whose results are never reported don't pile up", () => {
    const ledger = new CallLedger(1_000);
    for (let index = 0; index < 1_000; index += 1) {
      ledger.handle(`${index}`, "x", { index }, "finished").data = index;
    }
    ledger.report("old", "x", { index: 0 });
    ledger.report("new", "x", { index: 999 });
    expect(ledger.settle("old")?.handled).toBeUndefined();
    expect(ledger.settle("new")?.handled?.data).toBe(999);
  });
});

describe("Decisions", () => {
  const decision = (target: string) => ({ target, allowed: false, reason: "not listed" });

  test("repeats in a row are one event; another decision ends the row", () => {
    const told: AgentEvent[] = [];
    const decisions = new Decisions((event) => {
      told.push(event);
      return undefined;
    });
    for (const target of ["a", "a", "b", "a"]) decisions.record(decision(target));
    decisions.flush();
    expect(told).toMatchObject([
      { target: "a", count: 2 },
      { target: "b", count: 1 },
      { target: "a", count: 1 },
    ]);
    expect(decisions).toMatchObject({ allowed: 0, refused: 4 });
  });

  test("what is recorded is told without being asked for", async () => {
    const told: AgentEvent[] = [];
    const decisions = new Decisions((event) => {
      told.push(event);
      return undefined;
    }, 5);
    decisions.record(decision("a"));
    await expect.poll(() => told).toHaveLength(1);
  });
});

describe("what a result says of a call that we answered", () => {
  const event = {
    type: "tool_result",
    id: "a",
    output: "<wrapped>ours</wrapped>",
    data: { envelope: 1 },
  } as const;
  const answered = { state: "finished", outcome: { output: "ours", isError: false } } as const;
  it.each([
    ["our words, without the agent's data", event, answered, { output: "ours" }],
    ["our data", event, { ...answered, data: 7 }, { output: "ours", data: 7 }],
    [
      "our failure",
      event,
      { state: "finished", outcome: { output: "no", isError: true } },
      { output: "no", isError: true },
    ],
    [
      "what the agent failed itself",
      { type: "tool_result", id: "a", output: "timed out", isError: true },
      answered,
      { output: "timed out", isError: true },
    ],
    [
      "its own account of a call that we saw no end of",
      event,
      { state: "allowed" },
      { output: event.output, data: event.data },
    ],
  ] as const)("is %s", (_what, reported, handled, expected) => {
    expect(accountOf(reported, handled, false)).toEqual({ type: "tool_result", id: "a", ...expected });
  });

  it("and nothing of the agent's under an id that we issued", () => {
    const failed = { ...event, isError: true };
    expect(accountOf(failed, answered, true)).toEqual({
      ...{ type: "tool_result", id: "a", output: "ours", isError: false },
    });
  });
});
