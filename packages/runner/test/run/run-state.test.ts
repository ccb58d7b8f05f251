import { RunTimedOut } from "@ambit/core";
import { expect, test } from "vitest";
import { advanceRun, failureOf, progressOf, type RunState } from "../../src/run/run-state.js";
import { createWorld } from "../fakes/world.js";

const failure = new RunTimedOut("late");
const opening: RunState = { name: "opening" };
const closing: RunState = { name: "closing", progress: { name: "opening" }, end: { how: "failed", failure } };
const result = { ok: false, runId: "run-1", events: [] };
const ended: RunState = { name: "ended", progress: { name: "opening" }, result };

test.each<[RunState, RunState]>([
  [{ name: "admitted" }, opening],
  [opening, closing],
  [closing, ended],
])("a run goes from $name to $name", (from, to) => {
  expect(advanceRun(from, to)).toBe(to);
});

test.each<[RunState, RunState]>([
  [{ name: "admitted" }, closing],
  [opening, opening],
  [closing, opening],
  [ended, closing],
])("a run doesn't skip or repeat a state", (from, to) => {
  expect(() => advanceRun(from, to)).toThrow(`from '${from.name}' to '${to.name}'`);
});

test("a closed run keeps the last step that it reached", () => {
  expect(progressOf(ended)).toEqual({ name: "opening" });
  expect(failureOf({ how: "failed", failure })).toBe(failure);
  expect(failureOf({ how: "paused" })).toBeUndefined();
});

test("an ended run has reached its agent's step, but not before it is read", async () => {
  const world = await createWorld();
  const run = await world.admit({});
  expect(run.stage).toBe("starting");
  await world.tell(run);
  expect(run.stage).toBe("started");
});
