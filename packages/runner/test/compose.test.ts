import "reflect-metadata";
import { createSecretKey } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { Registry } from "@ambit/core";
import { recordingLog } from "@ambit/fakes/log";
import { expect, test } from "vitest";
import { ApprovedCalls, RunnersLedger } from "../src/call/answer.js";
import { ArgumentsChecker } from "../src/call/arguments/checker.js";
import { Calls } from "../src/call/call.js";
import { RunLogger } from "../src/events/observation.js";
import { runLimitsSchema } from "../src/index.js";
import { Deadlines, OwnedScope, Pause, RightToAct } from "../src/lifetime/scope.js";
import { SessionSpending } from "../src/model/budget.js";
import { AgentTurn } from "../src/run/agent-turn.js";
import { Run } from "../src/run/run.js";
import type { TurnEnd } from "../src/run/run-state.js";
import { composeRun, composeRunner, runClasses } from "../src/runner.js";
import { AgentPool } from "../src/session/agent-pool.js";
import { Sessions } from "../src/session/sessions.js";
import { tokens } from "../src/tokens.js";
import { createWorld, recordsOf } from "./fakes/world.js";

/** A root with two containers of runs that were admitted, and never begun. */
async function containers() {
  const log = recordingLog();
  const never = () => Promise.reject(new Error("nothing is imported here"));
  const registry = await Registry.load(
    [],
    never,
    { timeoutMs: 5_000, maxAgeMs: 3_600_000, retryMs: 15_000 },
    log,
  );
  const key = createSecretKey("k".repeat(32), "utf8");
  const limits = runLimitsSchema.parse({});
  const root = composeRunner({
    registry,
    limits,
    log,
    permissionCeiling: [],
    interactionKey: async () => key,
  });
  const world = await createWorld();
  const admitted = await world.runner.plan({ messages: [{ role: "user", content: "go" }] });
  const of = (runId: string) => composeRun(root, admitted, { runId, keepsEvents: false });
  return { root, one: of("one"), other: of("other") };
}

test("a run has one of each of its classes, and its neighbour another", async () => {
  const { one, other } = await containers();
  expect(runClasses.length).toBeGreaterThan(5);
  for (const found of runClasses) {
    const mine = one.resolve<object>(found);
    expect(mine).toBeInstanceOf(found);
    expect(one.resolve<object>(found), found.name).toBe(mine);
    expect(other.resolve<object>(found), found.name).not.toBe(mine);
  }
});

/** Unregistered, a class would be constructed anew for each that it is injected into. */
test("every class that is injected is registered", async () => {
  const folder = join(import.meta.dirname, "../src");
  const paths = (await readdir(folder, { recursive: true })).filter((path) => path.endsWith(".ts"));
  const text = (await Promise.all(paths.map((path) => readFile(join(folder, path), "utf8")))).join("\n");
  const namesIn = (pattern: RegExp) => [...text.matchAll(pattern)].map(([, name]) => name);
  const ofRun = runClasses.map(({ name }) => name);
  const ofRunner = [Sessions, AgentPool, ArgumentsChecker, RunnersLedger, SessionSpending].map(
    ({ name }) => name,
  );
  expect(namesIn(/@injectable\(\)\nexport class (\w+)/g).sort()).toEqual([...ofRun, Sessions.name].sort());
  const injected = new Set(namesIn(/@inject\((\w+)\)/g));
  expect(injected.size).toBeGreaterThan(5);
  const values = [ApprovedCalls, Calls, Deadlines, Pause, RightToAct, RunLogger];
  expect([...ofRun, ...ofRunner, ...values.map(({ name }) => name)]).toEqual(
    expect.arrayContaining([...injected]),
  );
  const { one } = await containers();
  for (const found of [Sessions, AgentPool, ArgumentsChecker, RunnersLedger, SessionSpending, ...values])
    expect(one.resolve<object>(found)).toBe(one.resolve<object>(found));
});

test("runs share the runner's sessions, and each has its own scope and id", async () => {
  const { root, one, other } = await containers();
  expect(one.resolve(Sessions)).toBe(root.resolve(Sessions));
  expect(one.resolve(tokens.scope)).toBeInstanceOf(OwnedScope);
  expect(one.resolve(tokens.scope)).not.toBe(other.resolve(tokens.scope));
  expect([one, other].map((container) => container.resolve(tokens.run).id)).toEqual(["one", "other"]);
  expect(root.isRegistered(tokens.run)).toBe(false);
});

test("a run knows fewer than ten others, and a test replaces one by registering another", async () => {
  const text = await readFile(join(import.meta.dirname, "../src/run/run.ts"), "utf8");
  expect([...text.matchAll(/@inject\((?!tokens\.)/g)].length).toBeLessThan(10);
  const { one } = await containers();
  const ends: TurnEnd[] = [];
  const turn: Pick<AgentTurn, keyof AgentTurn> = {
    agentIsIdle: true,
    serve: () => {},
    prompt: async () => ({ how: "completed", stopReason: "replaced" }),
    steer: async () => {},
    emitEnd: (end) => void ends.push(end),
  };
  one.register<Pick<AgentTurn, keyof AgentTurn>>(AgentTurn, { useValue: turn });
  const run = one.resolve(Run);
  run.admitted();
  for await (const record of recordsOf(run)) expect(record).toBeDefined();
  expect(run.result).toMatchObject({ ok: true, stopReason: "replaced" });
  expect(ends).toEqual([{ how: "completed", stopReason: "replaced" }]);
});

test("a run's container is disposed of alone", async () => {
  const { root, one, other } = await containers();
  const sessions = one.resolve(Sessions);
  await one.dispose();
  expect(() => one.resolve(tokens.run)).toThrow("disposed");
  expect(other.resolve(Sessions)).toBe(sessions);
  expect(root.resolve(Sessions)).toBe(sessions);
});
