import { describe, expect, test } from "vitest";
import { advanceCall, type CallState, type CallStep, waitsForUser } from "../../../src/call/call.js";

const outcome = { output: "ours", isError: false };
const pending = { name: "pending", claimed: false } as const;
const claimed = { name: "pending", claimed: true } as const;
const allowed = { name: "allowed", claimed: false } as const;
const called = { name: "allowed", claimed: true } as const;
const executing = { name: "executing" } as const;

const states = {
  pending,
  claimed,
  allowed,
  called,
  executing,
  asked: { name: "asked", resumes: claimed },
  fulfilled: { name: "asked", resumes: executing },
  parked: { name: "parked" },
  denied: { name: "denied", by: "rule", outcome },
  finished: { name: "finished", outcome, data: 7 },
} as const satisfies Readonly<Record<string, CallState>>;

const steps = {
  claim: { step: "claim" },
  release: { step: "release" },
  ask: { step: "ask" },
  answer: { step: "answer" },
  park: { step: "park" },
  allow: { step: "allow" },
  deny: { step: "deny", by: "rule", outcome },
  execute: { step: "execute" },
  finish: { step: "finish", outcome, data: 7 },
  forget: { step: "forget" },
} as const satisfies Readonly<Record<CallStep["step"], CallStep>>;

/** Every step that can follow, with its next state; all others can't. */
const table: Readonly<Record<keyof typeof states, Partial<Record<CallStep["step"], CallState>>>> = {
  pending: {
    claim: claimed,
    release: pending,
    ask: { name: "asked", resumes: pending },
    allow: allowed,
    deny: states.denied,
    execute: executing,
  },
  claimed: {
    release: pending,
    ask: states.asked,
    allow: allowed,
    deny: states.denied,
    execute: executing,
  },
  allowed: {
    claim: called,
    release: allowed,
    ask: { name: "asked", resumes: allowed },
    allow: allowed,
    deny: states.denied,
    execute: executing,
    forget: pending,
  },
  called: {
    release: allowed,
    ask: { name: "asked", resumes: called },
    allow: allowed,
    deny: states.denied,
    execute: executing,
    forget: claimed,
  },
  executing: { ask: states.fulfilled, finish: states.finished },
  asked: { answer: claimed, park: states.parked },
  fulfilled: { answer: executing, park: states.parked },
  parked: {},
  denied: { claim: claimed, forget: claimed },
  finished: { claim: claimed, forget: claimed },
};

const cases = Object.entries(states).flatMap(([from, state]) =>
  Object.values(steps).map((step) => ({ from, state, step })),
);

describe("a call's states", () => {
  test.each(cases)("$from, $step.step", ({ from, state, step }) => {
    const expected = Object.entries(table).find(([name]) => name === from)?.[1][step.step];
    expect(advanceCall(state, step)).toEqual(expected);
  });

  test("each state but the first is reached by a step, and only a parked call doesn't change", () => {
    const reached = new Set(
      Object.values(table).flatMap((next) => Object.values(next).map(({ name }) => name)),
    );
    expect([...reached].sort()).toEqual([...new Set(Object.values(states).map(({ name }) => name))].sort());
    const final = Object.entries(table).filter(([, next]) => Object.keys(next).length === 0);
    expect(final.map(([name]) => name)).toEqual(["parked"]);
  });

  test("a call with an open question, or a parked one, has no result yet", () => {
    const waiting = Object.entries(states).filter(([, state]) => waitsForUser(state));
    expect(waiting.map(([name]) => name)).toEqual(["asked", "fulfilled", "parked"]);
  });

  test("without an outcome a denial has none", () => {
    expect(advanceCall(claimed, { step: "deny", by: "rule" })).toEqual({ name: "denied", by: "rule" });
    expect(advanceCall(executing, { step: "finish", outcome })).toEqual({ name: "finished", outcome });
  });
});
