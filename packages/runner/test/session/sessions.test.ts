import { RequestInvalid, RunCancelled, SandboxFailed } from "@ambit/core";
import { calls, done, forever, type Script, says, untilAborted } from "@ambit/fakes/harness";
import { describe, expect, test } from "vitest";
import { createWorld, eventsOf, recordsOf } from "../fakes/world.js";

const named = { sessionId: "one" };

describe("a named session", () => {
  test("keeps its sandbox and its agent for the next run, which is warm", async () => {
    const world = await createWorld({ script: says("ok") });
    const first = await world.run(named);
    const second = await world.run(named);
    expect(first.result.receipt?.session).toEqual({ id: "one", history: "new" });
    expect(second.result.receipt?.session).toEqual({ id: "one", history: "warm" });
    expect(world.sandbox).toMatchObject({ opened: 1, closed: 0 });
    expect(world.harness.starts).toHaveLength(1);
    await world.runner.drain(0);
    expect(world.sandbox.closed).toBe(1);
    expect(world.harness.closed).toBe(1);
  });

  test("a warm agent gets only the new prompt; one without memory gets the transcript", async () => {
    await using world = await createWorld({ script: says("ok") });
    const messages = [
      { role: "user", content: "first" },
      { role: "assistant", content: "answer" },
      { role: "user", content: "second" },
    ];
    await world.run({ ...named, messages });
    const next = { role: "user", content: "third" };
    await world.run({ ...named, messages: [...messages, { role: "assistant", content: "ok" }, next] });
    const [cold, warm] = world.harness.prompts.map((blocks) => blocks.map(({ text }) => text).join(""));
    expect(cold).toContain("user: first");
    expect(cold).toContain("assistant: answer");
    expect(warm).toBe("third");
  });

  test("the history is replayed without a session", async () => {
    const world = await createWorld({ script: says("ok") });
    const messages = [
      { role: "user", content: "first" },
      { role: "assistant", content: "answer" },
      { role: "user", content: "second" },
    ];
    expect((await world.run({ messages })).result.receipt?.session.history).toBe("replayed");
  });

  test("an agent that has ended is started again, and resumes its stored conversation", async () => {
    await using world = await createWorld({ script: says("ok") });
    await world.run(named);
    world.harness.exited = true;
    const { result } = await world.run(named);
    expect(result.receipt?.session.history).toBe("loaded");
    expect(world.harness.starts.map(({ resume }) => resume)).toEqual([undefined, "conversation-1"]);
    expect(world.sandbox.opened).toBe(1);
    expect(world.harness.closed).toBe(1);
  });

  test("an agent that has lost its conversation is reported, unless the request has it", async () => {
    await using world = await createWorld({ script: says("ok") });
    world.harness.forgets = true;
    const user = (content: string) => ({ role: "user", content });
    expect((await world.run({ ...named, messages: [user("first")] })).result.warnings).toBeUndefined();
    world.harness.exited = true;
    const { result } = await world.run({ ...named, messages: [user("second")] });
    expect(result.receipt?.session.history).toBe("new");
    expect(result.warnings).toMatchObject([
      { path: "sessionId", message: expect.stringContaining("its agent couldn't load it") },
    ]);
    world.harness.exited = true;
    const messages = [user("second"), { role: "assistant", content: "ok" }, user("third")];
    const replayed = (await world.run({ ...named, messages })).result;
    expect(replayed.receipt?.session.history).toBe("replayed");
    expect(replayed.warnings).toBeUndefined();
  });

  test("a sandbox that can't enforce its boundary any more fails its run, and no other run gets it", async () => {
    const failure = new SandboxFailed("The boundary's proxy failed: the run has no network.");
    let fails = true;
    await using world = await createWorld({
      script: async function* () {
        if (fails) world.sandbox.specs.at(-1)?.onFailure?.(failure);
        yield { type: "message", text: "ok" };
        yield done;
      },
    });
    const { result } = await world.run(named);
    expect(result).toMatchObject({ ok: false, failure: { code: "sandbox_failed" }, error: failure.message });
    expect(world.sandbox).toMatchObject({ opened: 1, closed: 1 });
    fails = false;
    expect((await world.run(named)).result.ok).toBe(true);
    // It fails between runs: the next run gets another.
    world.sandbox.specs.at(-1)?.onFailure?.(failure);
    expect((await world.run(named)).result).toMatchObject({
      ok: true,
      receipt: { session: { history: "new" } },
    });
    expect(world.sandbox.opened).toBe(3);
  });

  test.each([
    ["another tool", { customTools: [{ name: "other", callRef: "r", permission: "allow" }] }],
    ["another model", { model: "bigger" }],
    ["another reasoning effort", { reasoningEffort: "high" }],
    ["other permissions", { permissions: { default: "deny" } }],
    [
      "another credential",
      {
        modelConnection: {
          credentials: [{ binding: { kind: "environment", name: "OPENAI_API_KEY" }, value: "sk-other" }],
        },
      },
    ],
  ])("a run with %s gets a new agent in the same sandbox", async (_what, change) => {
    await using world = await createWorld({
      script: async function* ({ scope, tools }) {
        for (const { name } of scope.servers) tools(name);
        yield { type: "message", text: "ok" };
        yield done;
      },
    });
    await world.run(named);
    const { result } = await world.run({ ...named, ...change });
    expect(result.ok).toBe(true);
    expect(world.harness.starts).toHaveLength(2);
    expect(world.harness.closed).toBe(1);
    expect(world.sandbox.opened).toBe(1);
  });

  test("between runs a kept agent's calls execute nothing", async () => {
    const customTools = [{ name: "look_up", permission: "allow", callRef: "ref" }];
    let later: Promise<unknown> = Promise.resolve();
    let callLater = () => {};
    await using world = await createWorld({
      script: async function* ({ tools }) {
        const own = tools();
        callLater = () => {
          later = own.call("look_up");
        };
        yield done;
      },
    });
    await world.run({ ...named, customTools });
    callLater();
    expect(await later).toEqual({ output: "No run is active: nothing was executed.", isError: true });
    expect(world.callback.calls).toEqual([]);
  });

  test("is busy while a run has it", async () => {
    const world = await createWorld({
      script: async function* ({ signal }) {
        yield { type: "message", text: "begun" };
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        yield done;
      },
    });
    const run = await world.admit(named);
    const records = recordsOf(run);
    await records.next();
    await records.next();
    const second = await world.run(named);
    expect(second.result).toMatchObject({ ok: false, failure: { code: "session_in_use", retryable: true } });
    await world.runner.drain(0);
  });

  test("that is busy is waited for by a run that may wait, for as long as it isn't cancelled", async () => {
    const turns: (() => void)[] = [];
    const world = await createWorld({
      script: async function* () {
        yield { type: "message", text: "begun" };
        await new Promise<void>((resolve) => turns.push(resolve));
        yield done;
      },
    });
    const first = await world.admit(named);
    const records = recordsOf(first);
    await records.next();
    await expect.poll(() => turns.length).toBe(1);
    const waits = { ...named, whenBusy: "queue" };
    const [second, cancelled] = [world.run(waits), await world.admit(waits)];
    const itsRecords = recordsOf(cancelled);
    await itsRecords.next();
    cancelled.cancel(new RunCancelled("The run was cancelled.", "caller"));
    await cancelled.ended;
    expect(cancelled.result).toMatchObject({ ok: true, stopReason: "cancelled" });
    expect(turns).toHaveLength(1);
    turns[0]?.();
    await expect.poll(() => turns.length).toBe(2);
    expect(first.result).toMatchObject({ ok: true });
    turns[1]?.();
    expect((await second).result).toMatchObject({ ok: true, receipt: { session: { history: "warm" } } });
  });

  test("another project's session of the same name is separate", async () => {
    await using world = await createWorld({ script: says("ok") });
    await world.run({ ...named, projectId: "a" });
    await world.run({ ...named, projectId: "b" });
    expect(world.sandbox.opened).toBe(2);
  });

  test("the project is also the one of `runContext`, and `projectId` overrides it", async () => {
    const world = await createWorld({ script: says("ok") });
    const inContext = (id: string) => ({ runContext: { project: { id } } });
    await world.run({ ...named, ...inContext("a") });
    await world.run({ ...named, ...inContext("b") });
    expect(world.sandbox.opened).toBe(2);
    const warm = [
      { ...named, projectId: "a" },
      { ...named, ...inContext("b"), projectId: "a" },
      { ...named, ...inContext("a"), projectId: " " },
    ];
    for (const body of warm) expect((await world.run(body)).result.receipt?.session.history).toBe("warm");
    expect(world.sandbox.opened).toBe(2);
    expect(await world.runner.endSession("one")).toBe(false);
    expect(await world.runner.endSession("one", "a")).toBe(true);
    expect(await world.runner.endSession("one", "b")).toBe(true);
  });

  test("a run that is cancelled, and whose agent doesn't end its turn, leaves its files and no agent", async () => {
    const script: Script = async function* () {
      yield { type: "message", text: "x" };
      await forever();
    };
    await using world = await createWorld({ script: [script, says("ok")], limits: { closeMs: 40 } });
    const run = await world.admit(named);
    const recorded = world.tell(run);
    await expect.poll(() => world.harness.prompts.length).toBe(1);
    run.cancel(new RunCancelled("stop", "caller"));
    await recorded;
    expect(world.sandbox).toMatchObject({ opened: 1, closed: 0 });
    expect(world.harness.closed).toBe(1);
    // It may have stored half of the turn.
    expect((await world.run(named)).result).toMatchObject({
      ok: true,
      receipt: { session: { history: "new" } },
      warnings: [
        { path: "sessionId", message: expect.stringContaining("the last run failed: run_cancelled") },
      ],
    });
    expect(world.sandbox.opened).toBe(1);
  });

  test("keeps its sandbox and its agent when its caller cancels a run, and the agent ends its turn in time", async () => {
    const waits: Script = async function* ({ signal }) {
      yield { type: "message", text: "x" };
      await untilAborted(signal, forever());
      yield done;
    };
    await using world = await createWorld({ script: [waits, says("ok")] });
    const run = await world.admit(named);
    const recorded = world.tell(run);
    await expect.poll(() => world.harness.prompts.length).toBe(1);
    run.cancel(new RunCancelled("stop", "caller"));
    expect((await recorded).result).toMatchObject({ ok: true, stopReason: "cancelled" });
    expect(world.sandbox).toMatchObject({ opened: 1, closed: 0 });
    const { result } = await world.run(named);
    expect(result).toMatchObject({ ok: true, receipt: { session: { history: "warm" } } });
    expect(world.harness.starts).toHaveLength(1);
  });

  test("ends when it was unused for long enough", async () => {
    const world = await createWorld({ script: says("ok"), limits: { sessionTtlMs: 30 } });
    await world.run(named);
    expect(world.sandbox.closed).toBe(0);
    await expect.poll(() => world.sandbox.closed).toBe(1);
    expect(world.harness.closed).toBe(1);
  });

  test("makes room in its own project only, and another project's new session is refused", async () => {
    await using world = await createWorld({ script: says("ok"), limits: { sessions: 2 } });
    const session = (projectId: string, sessionId: string) => world.run({ projectId, sessionId });
    await session("a", "one");
    await session("b", "one");
    // The least recently used of all is another project's.
    expect((await session("b", "two")).result.ok).toBe(true);
    expect(world.runner.sessions).toEqual([
      { project: "a", session: "one" },
      { project: "b", session: "two" },
    ]);
    expect((await session("c", "one")).result).toMatchObject({
      error: expect.stringContaining("2 sessions are kept"),
      failure: { code: "at_capacity", retryable: true },
    });
    expect((await session("a", "one")).result.receipt?.session.history).toBe("warm");
    // A run without a session needs no room.
    expect((await world.run({ projectId: "c" })).result.ok).toBe(true);
    await world.runner.endSession("one", "a");
    expect((await session("c", "one")).result.ok).toBe(true);
  });

  test("is one of a share of all sessions for each project", async () => {
    await using world = await createWorld({
      script: says("ok"),
      limits: { sessions: 4, sessionsPerProject: 2 },
    });
    for (const sessionId of ["one", "two", "three"]) await world.run({ projectId: "a", sessionId });
    await world.run({ projectId: "b", sessionId: "one" });
    expect(world.runner.sessions.map(({ project, session }) => `${project} ${session}`)).toEqual([
      ...["a two", "a three", "b one"],
    ]);
  });

  test("the least recently used one is ended to make room", async () => {
    const world = await createWorld({ script: says("ok"), limits: { sessions: 2 } });
    for (const sessionId of ["a", "b", "a", "c"]) await world.run({ sessionId });
    expect(world.sandbox).toMatchObject({ opened: 3, closed: 1 });
    await world.run({ sessionId: "a" });
    expect(world.sandbox.opened).toBe(3);
    await world.run({ sessionId: "b" });
    expect(world.sandbox.opened).toBe(4);
    await world.runner.drain(0);
    expect(world.sandbox.closed).toBe(4);
  });

  test("reports connections that it made between two runs with the next one", async () => {
    await using world = await createWorld({ script: says("ok") });
    await world.run(named);
    const decide = (target: string, allowed: boolean) =>
      world.sandbox.specs.at(-1)?.onDecision?.({ target, allowed, reason: "a rule" });
    for (let each = 0; each < 12; each += 1) decide("warm.example:443", true);
    for (let each = 0; each < 300; each += 1) decide(`host-${each}.example:443`, false);
    const next = await world.run(named);
    expect(next.result.receipt?.decisions).toEqual({ allowed: 12, refused: 300 });
    expect(eventsOf(next, "boundary_decision")).toContainEqual({
      type: "boundary_decision",
      target: "warm.example:443",
      allowed: true,
      count: 12,
      reason: "between two runs: a rule",
    });
    expect((await world.run(named)).result.receipt?.decisions).toEqual({ allowed: 0, refused: 0 });
    decide("late.example:443", true);
    await world.runner.drain(0);
    expect(world.log.lines).toContainEqual(
      expect.objectContaining({
        message: "a session made connections after its last run",
        fields: expect.objectContaining({
          connections: [{ target: "late.example:443", allowed: true, count: 1 }],
        }),
      }),
    );
  });

  test("none is kept if the deployer disabled that", async () => {
    const world = await createWorld({ script: says("ok"), limits: { sessions: 0 } });
    await world.run(named);
    expect(world.sandbox.closed).toBe(1);
  });

  test("can be ended, once; with the run that uses it", async () => {
    const world = await createWorld({
      limits: { closeMs: 40 },
      script: [
        says("ok"),
        async function* () {
          yield { type: "message", text: "x" };
          await forever();
        },
      ],
    });
    await world.run(named);
    expect(await world.runner.endSession("one", "elsewhere")).toBe(false);
    expect(await world.runner.endSession("one")).toBe(true);
    expect(await world.runner.endSession("one")).toBe(false);
    const recorded = world.tell(await world.admit(named));
    await expect.poll(() => world.harness.prompts.length).toBe(2);
    expect(await world.runner.endSession("one")).toBe(true);
    expect((await recorded).result.stopReason).toBe("cancelled");
    expect(world.sandbox).toMatchObject({ opened: 2, closed: 2 });
    await expect(world.runner.endSession(" ")).rejects.toThrow(RequestInvalid);
  });

  test("an agent that throws or hangs in close isn't kept with its session", async () => {
    const world = await createWorld({
      script: says("ok"),
      harness: { onClose: forever },
      limits: { closeMs: 40 },
    });
    await world.run(named);
    await world.run({ ...named, model: "bigger" });
    await world.runner.drain(0);
    expect(world.sandbox).toMatchObject({ opened: 1, closed: 1 });
  });
});

test("publications are closed with the agent they were made for", async () => {
  const customTools = [{ name: "look_up", permission: "allow", callRef: "ref" }];
  const world = await createWorld({ script: calls("look_up") });
  await world.run({ customTools });
  expect(world.delivery.open).toBe(0);
  await world.run({ ...named, customTools });
  expect(world.delivery.open).toBe(1);
  await world.runner.drain(0);
  expect(world.delivery.open).toBe(0);
});
