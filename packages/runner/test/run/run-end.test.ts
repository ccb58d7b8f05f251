import { ModelFailed, SandboxFailed } from "@ambit/core";
import type { AgentEvent } from "@ambit/core/contract";
import { calls, done, forever, type Script, says, untilAborted } from "@ambit/fakes/harness";
import { describe, expect, test } from "vitest";
import { asks, given } from "../fakes/parked-calls.js";
import { createWorld, eventsOf, recordsOf, type Told, type World } from "../fakes/world.js";

const refused = { target: "a.example:443", allowed: false, reason: "the network is off" };

/** Reports a connection, says something, and continues with the script. */
const connecting = (then: Script): Script =>
  async function* (turn) {
    yield { type: "message_start", id: "m" };
    yield { type: "message_delta", id: "m", delta: "so" };
    // Its reader gets that before the turn continues.
    await new Promise((resolve) => setImmediate(resolve));
    yield* then(turn);
  };

const waits: Script = async function* ({ signal }) {
  yield { type: "message", text: "begun" };
  await untilAborted(signal, forever());
  yield { type: "done", stopReason: "cancelled" };
};

test("warns of calls that the agent ended its turn without, and of what its harness says", async () => {
  const world = await createWorld({
    script: async function* ({ ask, warn }) {
      for (const id of ["a", "b"]) {
        yield { type: "tool_call", id, name: "shell", input: { command: id } };
        await ask({ toolCallId: id, toolName: "shell", input: { command: id } });
      }
      warn?.("Something came too late.");
      yield { type: "tool_result", id: "a", output: "done" };
      yield done;
    },
  });
  const recorded = await world.run({ permissions: { default: "allow" } });
  const { result } = recorded;
  expect(result).toMatchObject({ ok: true, stopReason: "end_turn" });
  expect(eventsOf(recorded, "tool_result")).toContainEqual({
    type: "tool_result",
    id: "b",
    output: "The agent ended its turn before this call had a result.",
    isError: true,
  });
  expect(result.warnings).toEqual([
    { path: "harness", message: "Something came too late." },
    {
      path: "harness",
      message: "The agent ended its turn before a call had a result: what was called may have run.",
    },
  ]);
});

interface End {
  readonly script: Script;
  readonly stopReason?: string;
  /** Done to the run when it has said something. */
  readonly during?: (world: World, runId: string) => unknown;
  readonly body?: object;
}

const ends: Readonly<Record<string, End>> = {
  "its own end": { script: says("ok"), stopReason: "end_turn" },
  "a pause": { script: calls("send", given), stopReason: "paused", body: { customTools: [asks] } },
  "a cancel": { script: waits, stopReason: "cancelled", during: (world, id) => world.runner.cancel(id) },
  "a kill": { script: waits, stopReason: "cancelled", during: (world) => world.runner.endSession("s") },
  "a shutdown": { script: waits, during: (world) => world.runner.drain(0) },
  "a sandbox that fails": {
    script: waits,
    during: (world) => world.sandbox.specs.at(-1)?.onFailure?.(new SandboxFailed("gone")),
  },
  "a model that fails": {
    script: async function* () {
      yield { type: "message", text: "begun" };
      throw new ModelFailed("no quota");
    },
  },
  "an agent that says done and fails": {
    script: async function* () {
      yield { type: "message", text: "begun" };
      yield done;
      throw new ModelFailed("no quota");
    },
  },
  "an agent that says done twice": {
    script: async function* () {
      yield { type: "message", text: "begun" };
      yield { type: "done", stopReason: "refusal" };
      yield done;
    },
    stopReason: "end_turn",
  },
};

describe("one done ends the events of every run", () => {
  test.each(Object.entries(ends))("%s", async (_what, { script, stopReason, during, body }) => {
    // Connections are decided on until the sandbox is closed, and reported later.
    await using world: World = await createWorld({
      script: connecting(script),
      limits: { closeMs: 60 },
      harness: { onClose: () => world.sandbox.specs.at(-1)?.onDecision?.(refused) },
    });
    const run = await world.admit({ sessionId: "s", ...body }, true);
    const events: AgentEvent[] = [];
    let result: Told["result"] | undefined;
    for await (const record of recordsOf(run)) {
      if (record.kind === "result") result = record.result;
      else events.push(record.event);
      if (record.kind !== "event") continue;
      if (record.event.type === "message_delta") world.sandbox.specs.at(-1)?.onDecision?.(refused);
      if (record.event.type === "message" && during !== undefined) void during(world, run.id);
    }
    const isFailure = stopReason === undefined;
    expect(result?.ok).toBe(!isFailure);
    expect(events.at(-1)).toEqual(isFailure ? { type: "done" } : { type: "done", stopReason });
    expect(eventsOf({ events }, "done")).toHaveLength(1);
    expect(eventsOf({ events }, "error")).toHaveLength(isFailure ? 1 : 0);
    expect(eventsOf({ events }, "boundary_decision").length).toBeGreaterThan(0);
    expect(result?.events.filter(({ type }) => type === "done")).toHaveLength(1);
    expect(result?.events.at(-1)?.type).toBe("done");
    expect(result?.stopReason).toBe(stopReason);
  });
});

describe("a turn without output or calls fails", () => {
  const silent: Readonly<Record<string, readonly AgentEvent[]>> = {
    nothing: [],
    "white space": [{ type: "message", text: " \n" }],
    thoughts: [{ type: "thought", text: "hm" }],
    "what is transient": [{ type: "data", name: "notice", data: {}, transient: true }],
    figures: [{ type: "usage", input: 10, output: 0 }],
  };
  test.each(Object.entries(silent))("%s", async (_what, events) => {
    const world = await createWorld({
      script: async function* () {
        yield* events;
        yield done;
      },
    });
    const { result } = await world.run();
    expect(result).toMatchObject({ ok: false, failure: { code: "model_failed", retryable: true } });
    expect(result.error).toContain("without any output");
  });

  const telling: Readonly<Record<string, readonly AgentEvent[]>> = {
    "a word": [
      { type: "message_start", id: "m" },
      { type: "message_delta", id: "m", delta: "ok" },
    ],
    "a call": [{ type: "tool_call", id: "1", name: "Bash", input: {} }],
    "a file": [{ type: "file", url: "data:,x", mediaType: "text/plain" }],
    "a plan": [{ type: "data", name: "plan", data: {} }],
    "a refusal": [{ type: "done", stopReason: "refusal" }],
  };
  test.each(Object.entries(telling))("but not with %s", async (_what, events) => {
    const world = await createWorld({
      script: async function* () {
        yield* events;
        if (!events.some(({ type }) => type === "done")) yield done;
      },
    });
    expect((await world.run()).result.ok).toBe(true);
  });

  test("nor with a call that the agent doesn't report", async () => {
    const world = await createWorld({
      script: async function* ({ tools }) {
        await tools().call("send", given);
        yield done;
      },
    });
    const recorded = await world.run({ customTools: [{ ...asks, permission: "allow" }] });
    expect(recorded.result.ok).toBe(true);
  });
});
