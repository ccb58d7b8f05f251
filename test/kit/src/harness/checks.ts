import assert from "node:assert/strict";
import { access } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type AgentEvent, HarnessFailed, ModelFailed } from "@ambit/core/plugin";
import type { AgentScript } from "./agent-program.js";
import type { HarnessStage } from "./harness-stage.js";
import type { TurnResult } from "./turn.js";

/** A requirement on every harness, tested with the agent that the script names. */
export interface HarnessCheck {
  readonly title: string;
  readonly script: AgentScript;
  check(stage: HarnessStage): Promise<void>;
}

const goneMs = 10_000;

export const harnessChecks: readonly HarnessCheck[] = [
  {
    title: "passes on the agent's output in order, and ends the turn with one done event",
    script: "normal",
    check: async (stage) => {
      const agent = await stage.start();
      for (const text of ["the first of two turns", "and the second one"]) {
        const result = await stage.turn(agent, `say ${text}`);
        assertWellFormed(result);
        assert.equal(textOf(result.events), text);
      }
    },
  },
  {
    title: "asks for permission before one of the agent's own tools acts, and passes on an approval",
    script: "normal",
    check: async (stage) => {
      const file = join(stage.sandbox.workspace, "allowed");
      const onQuestion = async () =>
        assert.equal(await exists(file), false, "the tool acted before the answer");
      const result = await stage.turn(await stage.start(), "write allowed", { answer: "allow", onQuestion });
      assertWellFormed(result);
      assert.equal(result.questions.length, 1, "the question didn't reach the runner");
      assert.deepEqual(result.questions[0]?.input, { path: "allowed" });
      assert.equal(await exists(file), true);
    },
  },
  {
    title: "passes on a denial: the tool doesn't act",
    script: "normal",
    check: async (stage) => {
      const result = await stage.turn(await stage.start(), "write denied", { answer: "deny" });
      assertWellFormed(result);
      assert.equal(
        await exists(join(stage.sandbox.workspace, "denied")),
        false,
        "the tool acted all the same",
      );
    },
  },
  {
    title: "parks a call without allowing it",
    script: "normal",
    check: async (stage) => {
      await stage.turn(await stage.start(), "write parked", { answer: "park" });
      assert.equal(
        await exists(join(stage.sandbox.workspace, "parked")),
        false,
        "the tool acted all the same",
      );
    },
  },
  {
    title: "ends the turn of an agent that stops when it is cancelled",
    script: "normal",
    check: (stage) => endsWhenCancelled(stage),
  },
  {
    title: "ends the turn of an agent that ignores a cancel",
    script: "ignores-cancel",
    check: (stage) => endsWhenCancelled(stage),
  },
  {
    title: "ignores unknown output and updates",
    script: "careless-output",
    check: async (stage) => {
      const result = await stage.turn(await stage.start(), "say all is well");
      assertWellFormed(result);
      assert.equal(textOf(result.events), "all is well");
    },
  },
  {
    title: "fails the turn of an agent that answers with an error",
    script: "fails-the-turn",
    check: (stage) => failsTheTurn(stage),
  },
  {
    title: "fails the turn of an agent that exits, after its output, and accepts no further one",
    script: "crashes",
    check: async (stage) => {
      const agent = await stage.start();
      const { events, failure } = await stage.turn(agent, "say anything");
      assertTyped(failure);
      assert.equal(textOf(events), "so far");
      assert.equal(agent.ended(), true, "it reports that it accepts a further turn");
    },
  },
  {
    title: "fails to start a program that exits at once",
    script: "exits-at-once",
    check: async (stage) => assertTyped(await failureOf(stage.start())),
  },
  {
    title: "stops waiting for a program without a protocol when the run ends",
    script: "no-agent",
    check: (stage) => stopsStarting(stage),
  },
  {
    title: "stops waiting for an agent that never answers when the run ends",
    script: "never-answers",
    check: (stage) => stopsStarting(stage),
  },
  {
    title: "leaves no process, although agent and children ignore SIGTERM",
    script: "normal",
    check: async (stage) => {
      const agent = await stage.start();
      await stage.turn(agent, "say hello");
      await agent.close();
      await agent.close();
      assert.equal(agent.ended(), true, "a closed agent reports that it accepts a further turn");
      await assertGone(stage);
    },
  },
  {
    title: "leaves no process when the run ends during a turn",
    script: "ignores-cancel",
    check: async (stage) => {
      const agent = await stage.start();
      await new Promise<void>((resolve, reject) => {
        const turn = stage.turn(agent, "wait", { onEvent: () => stage.scope.close().then(resolve, reject) });
        turn.then(() => undefined, reject);
      });
      await assertGone(stage);
    },
  },
];

async function endsWhenCancelled(stage: HarnessStage): Promise<void> {
  const agent = await stage.start();
  const cancel = new AbortController();
  const onEvent = () => cancel.abort(new Error("the run was cancelled"));
  // The harness decides how it ends; it only has to end.
  const { events } = await stage.turn(agent, "wait", { signal: cancel.signal, onEvent });
  assert.ok(events.length > 0, "the agent said nothing before it was cancelled");
}

async function failsTheTurn(stage: HarnessStage): Promise<void> {
  const { failure } = await stage.turn(await stage.start(), "say anything");
  assertTyped(failure);
}

async function stopsStarting(stage: HarnessStage): Promise<void> {
  const starting = failureOf(stage.start());
  await waitFor(async () => (await stage.processes()).length > 0, goneMs);
  await stage.scope.close();
  assert.notEqual(await starting, undefined, "it started");
  await assertGone(stage);
}

async function failureOf(made: Promise<unknown>): Promise<unknown> {
  return made.then(
    () => undefined,
    (error: unknown) => error,
  );
}

/** Core's classes: any other error is reported as a bug of the plugin. */
function assertTyped(failure: unknown): void {
  const isTyped = failure instanceof HarnessFailed || failure instanceof ModelFailed;
  assert.ok(isTyped, `expected HarnessFailed or ModelFailed, got ${String(failure)}`);
}

/** Ended normally, with one `done` at the end; results follow their calls, and parts of a block are inside it. */
function assertWellFormed({ events, failure }: TurnResult): void {
  assert.equal(failure, undefined);
  const types = events.map(({ type }) => type);
  assert.deepEqual(
    types.flatMap((type, at) => (type === "done" ? [at] : [])),
    [events.length - 1],
    `one done event, the last: ${types.join(", ")}`,
  );
  const calls = new Set<string>();
  const blocks = new Set<string>();
  for (const event of events) {
    if (event.type === "tool_call") calls.add(event.id);
    if (event.type === "tool_result") assert.ok(calls.has(event.id), "a result without a call before it");
    if (event.type === "message_start" || event.type === "thought_start") blocks.add(event.id);
    if (event.type === "message_delta" || event.type === "thought_delta") assertOpen(blocks, event.id);
    if (event.type === "message_end" || event.type === "thought_end") {
      assertOpen(blocks, event.id);
      blocks.delete(event.id);
    }
  }
  assert.equal(blocks.size, 0, "a block of text has no end");
}

const assertOpen = (blocks: ReadonlySet<string>, id: string) =>
  assert.ok(blocks.has(id), `a part of the block ${id}, which isn't open`);

function textOf(events: readonly AgentEvent[]): string {
  return events
    .map((event) => {
      if (event.type === "message") return event.text;
      return event.type === "message_delta" ? event.delta : "";
    })
    .join("");
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

async function assertGone(stage: HarnessStage): Promise<void> {
  const processes = await stage.processes();
  assert.ok(processes.length > 0, "the agent never ran");
  const isGone = await waitFor(async () => !processes.some(isRunning), goneMs);
  assert.ok(isGone, `processes of the agent are left: ${processes.filter(isRunning).join(", ")}`);
}

/** False if it doesn't become true in time. */
async function waitFor(isSo: () => Promise<boolean>, ms: number): Promise<boolean> {
  for (const late = Date.now() + ms; Date.now() < late; ) {
    if (await isSo()) return true;
    await delay(20);
  }
  return false;
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
