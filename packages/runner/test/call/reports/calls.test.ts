import "reflect-metadata";
import { describe, expect, test } from "vitest";
import { type CallStep, type CallSubject, Calls } from "../../../src/call/call.js";

const newCalls = (reportedCalls = 1_000) => new Calls({ reportedCalls });

const claim = (calls: Calls, agentId: string | undefined, input: unknown) =>
  calls.claim(agentId, { name: "x", origin: "agent", input });

function finish(calls: Calls, agentId: string | undefined, input: unknown, output: string): string {
  const { id } = claim(calls, agentId, input);
  calls.step(id, { step: "execute" });
  calls.step(id, { step: "finish", outcome: { output, isError: false } });
  return id;
}

const outputOf = (calls: Calls, agentId: string) => {
  const state = calls.settle(agentId)?.state;
  return state?.name === "finished" ? state.outcome.output : state?.name;
};

describe("the agent's reports and the runner's calls", () => {
  test("are matched by id, else by tool and arguments, each once", () => {
    const calls = newCalls();
    calls.report("a", "x", { n: 1 });
    calls.report("b", "x", { n: 1 });
    finish(calls, "b", { n: 1 }, "second");
    finish(calls, "unknown", { n: 1 }, "first");
    expect(outputOf(calls, "b")).toBe("second");
    expect(outputOf(calls, "a")).toBe("first");
    expect(calls.settle("a")).toBeUndefined();
    expect(calls.settleAll()).toEqual([]);
  });

  test("a call reported without arguments matches one without arguments", () => {
    const calls = newCalls();
    calls.report("a", "x", undefined);
    expect(claim(calls, undefined, { n: 1 }).id).not.toBe("a");
    expect(claim(calls, undefined, {}).id).toBe("a");
  });

  test("simultaneous equal calls stay separate", () => {
    const calls = newCalls();
    calls.report("a", "x", {});
    calls.report("b", "x", {});
    const [first, second, third] = [1, 2, 3].map(() => claim(calls, undefined, {}).id);
    expect([first, second]).toEqual(["a", "b"]);
    expect(["a", "b"]).not.toContain(third);
  });

  test("a later report of the same call replaces the earlier", () => {
    const calls = newCalls();
    calls.report("a", "x", {});
    calls.report("a", "x", { n: 1 });
    expect(claim(calls, undefined, { n: 1 }).id).toBe("a");
  });

  test("a call with a question is matched before a reported one", () => {
    const calls = newCalls();
    calls.report("reported", "x", {});
    calls.step(claim(calls, "asked", {}).id, { step: "allow" });
    expect(claim(calls, undefined, {}).id).toBe("asked");
    expect(claim(calls, undefined, {}).id).toBe("reported");
  });

  test("the arguments of the question count, not those reported later", () => {
    const calls = newCalls();
    calls.report("a", "x", undefined);
    calls.step(claim(calls, "a", { n: 1 }).id, { step: "allow" });
    calls.report("a", "x", undefined);
    expect(claim(calls, undefined, { n: 1 }).id).toBe("a");
  });

  test.each<[string, readonly CallStep["step"][]]>([
    ["is being decided", []],
    ["waits for its user", ["ask"]],
    ["is executed", ["execute"]],
    ["is parked", ["ask", "park"]],
  ])("an id of a call that %s names another call", (_what, steps) => {
    const calls = newCalls();
    expect(claim(calls, "a", {}).id).toBe("a");
    for (const step of steps)
      if (step === "ask" || step === "execute" || step === "park") calls.step("a", { step });
    const state = calls.find("a")?.state;
    expect(claim(calls, "a", {}).id).not.toBe("a");
    expect(calls.find("a")?.state).toEqual(state);
  });

  test("an id may be used again once its call has ended, and the later outcome counts", () => {
    const calls = newCalls();
    calls.report("a", "x", {});
    expect(finish(calls, "a", {}, "one")).toBe("a");
    expect(finish(calls, "a", {}, "two")).toBe("a");
    expect(outputOf(calls, "a")).toBe("two");
  });

  test("a call that was abandoned undecided can be matched again, and an unreported one is dropped", () => {
    const calls = newCalls();
    calls.report("a", "x", {});
    calls.step(claim(calls, "a", {}).id, { step: "release" });
    expect(claim(calls, undefined, {}).id).toBe("a");
    const { id } = claim(calls, undefined, { n: 1 });
    calls.step(id, { step: "release" });
    expect(calls.find(id)).toBeUndefined();
  });
});

describe("memory of calls", () => {
  test("arguments and files are kept only while the runner has the call", () => {
    const calls = newCalls();
    const kept = (id: string) => [calls.find(id)?.input, calls.find(id)?.files];
    const files = { changes: [{ path: "a" }] };
    const subject: CallSubject = { name: "x", origin: "agent", input: { n: 1 }, files };
    calls.report("a", "x", subject.input);
    expect(kept("a")).toEqual([undefined, undefined]);
    calls.claim("a", subject);
    expect(kept("a")).toEqual([subject.input, subject.files]);
    calls.step("a", { step: "execute" });
    calls.report("a", "x", subject.input);
    expect(kept("a")).toEqual([subject.input, subject.files]);
    calls.step("a", { step: "finish", outcome: { output: "", isError: false } });
    expect(kept("a")).toEqual([undefined, undefined]);
  });

  test("calls without reported results don't accumulate", () => {
    const calls = newCalls();
    for (let index = 0; index < 1_000; index += 1) finish(calls, `${index}`, { index }, `${index}`);
    calls.report("old", "x", { index: 0 });
    calls.report("new", "x", { index: 999 });
    expect(outputOf(calls, "old")).toBe("pending");
    expect(outputOf(calls, "new")).toBe("999");
  });

  test("a reported call whose outcome is forgotten is still owed a result", () => {
    const calls = newCalls();
    calls.report("a", "x", {});
    finish(calls, "a", {}, "ours");
    for (let index = 0; index < 256; index += 1) finish(calls, `${index}`, { index }, "");
    expect(outputOf(calls, "a")).toBe("pending");
  });

  test("the outcome of a call whose result came first isn't kept", () => {
    const calls = newCalls();
    const output = "x".repeat(1_048_576);
    for (let index = 0; index < 20; index += 1) {
      calls.report("early", "x", { index });
      const { id } = claim(calls, "early", { index });
      calls.step(id, { step: "execute" });
      calls.settle("early");
      calls.step(id, { step: "finish", outcome: { output, isError: false } });
    }
    calls.report("a", "x", {});
    finish(calls, "a", {}, "kept");
    finish(calls, "b", { n: 2 }, output);
    expect(outputOf(calls, "a")).toBe("kept");
  });
});

describe("the same arguments", () => {
  const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
  test.each<[string, unknown, unknown, boolean]>([
    ["an object as its text", { filter: { a: 1, b: [2] } }, { filter: '{"b": [2], "a": 1}' }, true],
    ["a list as its text", { tags: ["a"] }, { tags: ' ["a"]' }, true],
    ["all of them as their text", { to: "ann" }, '{"to":"ann"}', true],
    ["another object", { filter: { a: 1 } }, { filter: '{"a":2}' }, false],
    ["a number as its text", { n: 1 }, { n: "1" }, false],
    ["a text that is none", { filter: "{a}" }, { filter: "{ a }" }, false],
    ["text within text", { filter: { a: { b: 1 } } }, { filter: { a: '{"b":1}' } }, false],
    ["a text too deep to compare", { filter: deep }, { filter: deep }, true],
  ])("%s", (_what, one, other, isSame) => {
    const calls = newCalls();
    calls.report("a", "x", one);
    expect(claim(calls, undefined, other).id === "a").toBe(isSame);
  });
});
