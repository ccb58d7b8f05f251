import {
  HarnessFailed,
  ModelFailed,
  OutputsFailed,
  RunCancelled,
  RunTimedOut,
  SandboxFailed,
} from "@ambit/core";
import type { AgentEvent } from "@ambit/core/contract";
import { says } from "@ambit/fakes/harness";
import type { SandboxBehaviour } from "@ambit/fakes/sandbox-backend";
import { describe, expect, test } from "vitest";
import type { RunLimits } from "../../src/index.js";
import { agentAfterTurn, type TurnEnd } from "../../src/run/run-state.js";
import { nextSandbox } from "../../src/session/next-sandbox.js";
import type { SessionKeeper } from "../../src/session/session.js";
import { FakeWorkspaces } from "../fakes/workspaces.js";
import { createWorld } from "../fakes/world.js";

const named = { sessionId: "one" };
const closed = { sandboxPermission: { network: "off" } };
const failed = (failure: ModelFailed | HarnessFailed | RunTimedOut | RunCancelled): TurnEnd => ({
  how: "failed",
  failure,
});

test.each<[string, TurnEnd, boolean, string]>([
  ["completed", { how: "completed", stopReason: "end_turn" }, true, "kept"],
  ["paused", { how: "paused" }, true, "kept"],
  ["paused, agent killed", { how: "paused" }, false, "conversation"],
  ["cancelled in time", failed(new RunCancelled("stop", "caller")), true, "kept"],
  ["cancelled, agent killed", failed(new RunCancelled("stop", "caller")), false, "nothing"],
  ["model failed", failed(new ModelFailed("429", { retryable: true })), true, "kept"],
  ["model failed in the turn", failed(new ModelFailed("429", { retryable: true })), false, "nothing"],
  ["timed out in time", failed(new RunTimedOut("late")), true, "kept"],
  ["timed out, agent killed", failed(new RunTimedOut("late")), false, "nothing"],
  ["agent at fault", failed(new HarnessFailed("no tools")), true, "nothing"],
])("of a turn that %s, the next one gets the right part of the agent", (_name, end, isIdle, after) => {
  expect(agentAfterTurn(end, isIdle)).toBe(after);
});

describe("the sandbox of the next run", () => {
  const present = {
    failure: undefined,
    fingerprint: "a",
    backend: "local",
    secrets: { all: new Set(["earlier"]), mayRemember: (): boolean => true },
    hadVisibleCredentials: false,
    paths: new Set(["/agent", "/compiled"]),
  };
  const needed = {
    fingerprint: "a",
    backend: "local",
    filesystem: "workspace",
    secrets: ["later"],
    paths: ["/agent"],
  } as const;
  const other = { ...needed, fingerprint: "b" };
  const whole = { how: "move", withoutHome: undefined };
  const workspaceOnly = { how: "move", withoutHome: expect.any(String) };
  const visible = { ...present, hadVisibleCredentials: true };
  test.each([
    ["the same plan", present, needed, { how: "reuse" }],
    ["the same plan, with credentials inside", visible, needed, { how: "reuse" }],
    ["another plan", present, other, whole],
    ["another plan, with credentials inside", visible, other, workspaceOnly],
    ["another plan, which has them too", visible, { ...other, secrets: ["earlier"] }, whole],
    ["a program with other files", present, { ...needed, paths: ["/agent", "/dependency"] }, whole],
    ["another backend", present, { ...other, backend: "runc" }, workspaceOnly],
    ["a read-only workspace", present, { ...other, filesystem: "readonly" }, { how: "refuse" }],
    ["no workspace", present, { ...other, filesystem: "off" }, { how: "refuse" }],
    ["a failed sandbox", { ...present, failure: { message: "x" } }, needed, { how: "lost" }],
    [
      "too many credentials",
      { ...present, secrets: { all: new Set<string>(), mayRemember: (): boolean => false } },
      needed,
      { how: "lost" },
    ],
  ] as const)("%s", (_name, session, next, decision) => {
    expect(nextSandbox(session, next)).toMatchObject(decision);
  });
});

describe("a session", () => {
  test("outlives a failed run with its files, and says that its conversation is new", async () => {
    await using world = await createWorld({
      script: [
        says("ok"),
        async function* () {
          yield { type: "message", text: "x" };
          throw new HarnessFailed("no luck");
        },
        says("ok"),
      ],
    });
    await world.run(named);
    expect((await world.run(named)).result).toMatchObject({ ok: false, failure: { code: "harness_failed" } });
    expect(world.sandbox).toMatchObject({ opened: 1, closed: 0 });
    expect(world.harness.closed).toBe(1);
    const { result } = await world.run(named);
    expect(result).toMatchObject({
      ok: true,
      receipt: { session: { history: "new" } },
      warnings: [
        { path: "sessionId", message: expect.stringContaining("the last run failed: harness_failed") },
      ],
    });
    expect(world.harness.starts.at(-1)?.resume).toBeUndefined();
    expect(world.sandbox.opened).toBe(1);
    expect((await world.run(named)).result.receipt?.session.history).toBe("warm");
  });

  test("outlives a run whose agent can't be started", async () => {
    let startFailure: HarnessFailed | undefined;
    const onStart = () => {
      if (startFailure !== undefined) throw startFailure;
    };
    await using world = await createWorld({ script: says("ok"), harness: { onStart } });
    await world.run(named);
    world.harness.exited = true;
    startFailure = new HarnessFailed("not found");
    expect((await world.run(named)).result.ok).toBe(false);
    startFailure = undefined;
    // The agent that didn't start was given nothing.
    expect((await world.run(named)).result.receipt?.session.history).toBe("loaded");
    expect(world.sandbox).toMatchObject({ opened: 1, closed: 0 });
  });

  test("drops its conversation where the request asks for a new one, without a warning", async () => {
    await using world = await createWorld({ script: says("ok") });
    await world.run(named);
    const { result } = await world.run({ ...named, conversation: "new" });
    expect(result).toMatchObject({ ok: true, receipt: { session: { history: "new" } } });
    expect(result.warnings).toBeUndefined();
    expect(world.harness.starts.map(({ resume }) => resume)).toEqual([undefined, undefined]);
    expect(world.sandbox.opened).toBe(1);
  });

  test("goes on in a new sandbox under another boundary, with its files and its conversation", async () => {
    const workspaces = new FakeWorkspaces();
    await using world = await createWorld({ script: says("ok"), rules: { workspaces } });
    await world.run(named);
    const { result } = await world.run({ ...named, ...closed });
    expect(result).toMatchObject({ ok: true, receipt: { session: { history: "loaded" } } });
    expect(result.warnings).toBeUndefined();
    expect(workspaces.copied).toEqual(["all"]);
    expect(world.sandbox).toMatchObject({ opened: 2, closed: 1 });
    expect(world.sandbox.specs.at(-1)?.boundary.network.mode).toBe("off");
  });

  test("starts its agent again where the program was replaced, with its conversation", async () => {
    await using world = await createWorld({ script: says("ok") });
    await world.run(named);
    expect((await world.run(named)).result.receipt?.session.history).toBe("warm");
    world.harness.outdated = true;
    const { result } = await world.run(named);
    expect(result).toMatchObject({ ok: true, receipt: { session: { history: "loaded" } } });
    expect(result.warnings).toBeUndefined();
    expect(world.sandbox.opened).toBe(1);
    expect((await world.run(named)).result.receipt?.session.history).toBe("warm");
  });

  test("goes on in a new sandbox where the program has files that its own doesn't show", async () => {
    const workspaces = new FakeWorkspaces();
    await using world = await createWorld({ script: says("ok"), rules: { workspaces } });
    world.harness.paths = ["/agent"];
    await world.run(named);
    world.harness.paths = ["/agent", "/dependency"];
    world.harness.outdated = true;
    const { result } = await world.run(named);
    expect(result).toMatchObject({ ok: true, receipt: { session: { history: "loaded" } } });
    expect(workspaces.copied).toEqual(["all"]);
    expect(world.sandbox).toMatchObject({ opened: 2, closed: 1 });
    expect(world.sandbox.specs.at(-1)?.requiredPaths.map(({ path }) => path)).toEqual([
      "/agent",
      "/dependency",
    ]);
  });

  test.each([
    ["the copy fails", { failure: "the disk is full", permission: closed }],
    [
      "the new workspace can't be written",
      { failure: undefined, permission: { sandboxPermission: { filesystem: "readonly" } } },
    ],
  ])("stays as it is, and the run fails, where %s", async (_what, { failure, permission }) => {
    const workspaces = new FakeWorkspaces();
    await using world = await createWorld({ script: says("ok"), rules: { workspaces } });
    await world.run(named);
    workspaces.failure = failure;
    const { result } = await world.run({ ...named, ...permission });
    expect(result).toMatchObject({
      ok: false,
      failure: { code: "snapshot_failed" },
      error: expect.stringContaining("It stays as it is"),
    });
    expect((await world.run(named)).result).toMatchObject({ ok: true });
    const { opened, closed: ended } = world.sandbox;
    // Its own is open still.
    expect(opened - ended).toBe(1);
    expect(world.sandbox.specs.at(-1)?.id === world.sandbox.specs[0]?.id).toBe(failure === undefined);
  });

  test.each([
    ["no run used it", { sessionTtlMs: 30 }, "no run used it for 0.03 s"],
    ["none is kept", { sessions: 0 }, "keeps no sessions"],
    ["others need its place", { sessions: 1 }, "needed its place"],
  ])("whose files are lost says so once: %s", async (_what, limits: Partial<RunLimits>, why) => {
    await using world = await createWorld({ script: says("ok"), limits });
    expect((await world.run(named)).result.warnings).toBeUndefined();
    if (limits.sessions === 1) await world.run({ sessionId: "two" });
    await expect.poll(() => world.sandbox.closed).toBe(1);
    const { result } = await world.run(named);
    expect(result.warnings).toMatchObject([{ path: "sessionId", message: expect.stringContaining(why) }]);
    if (limits.sessions !== 0) expect((await world.run(named)).result.warnings).toBeUndefined();
  });

  test("whose sandbox failed says so; one that its user ended doesn't", async () => {
    await using world = await createWorld({ script: says("ok") });
    await world.run(named);
    world.sandbox.specs.at(-1)?.onFailure?.(new SandboxFailed("The proxy failed."));
    const { result } = await world.run(named);
    expect(result.warnings).toMatchObject([
      { path: "sessionId", message: expect.stringContaining("its sandbox failed: The proxy failed.") },
    ]);
    await world.runner.endSession("one");
    expect((await world.run(named)).result.warnings).toBeUndefined();
  });
});

/** Keeps what one runner leaves to the next, as a store does. */
class FakeKeeper implements SessionKeeper {
  record: unknown;
  when: string | undefined;
  /** Default: at once. */
  isWritten: Promise<void> | undefined;
  fence = 1;

  holding() {
    return { fence: this.fence, record: this.record };
  }

  async keep(_name: unknown, _fence: number, record: unknown, when?: string) {
    this.record = record;
    this.when = when;
    await this.isWritten;
    return true;
  }

  async closed(_name: unknown, lost?: unknown) {
    this.record = lost;
  }

  onClosed() {}

  use: SessionKeeper["use"] = async (_name, use) => use;
}

describe("a runner that stops", () => {
  async function restarted(workspaces: FakeWorkspaces, keeper: FakeKeeper) {
    keeper.fence += 1;
    const world = await createWorld({ script: says("ok"), rules: { workspaces } });
    world.runner.keepSessionsIn(keeper);
    return world;
  }

  test("leaves the files of its idle sessions to the next one", async () => {
    const [workspaces, keeper] = [new FakeWorkspaces(), new FakeKeeper()];
    const one = await restarted(workspaces, keeper);
    await one.run(named);
    await one.runner.drain(0);
    expect(one.sandbox.closed).toBe(1);
    expect(workspaces.kept.size).toBe(1);
    await using two = await restarted(workspaces, keeper);
    const { result } = await two.run({ ...named, ...closed });
    expect(result).toMatchObject({ ok: true, receipt: { session: { history: "loaded" } } });
    expect(result.warnings).toBeUndefined();
    expect(two.harness.starts[0]?.resume).toBe("conversation-1");
    expect(workspaces).toMatchObject({ copied: ["all"], kept: new Map() });
  });

  test("tells the next one's run who had a terminal in the session", async () => {
    const [workspaces, keeper] = [new FakeWorkspaces(), new FakeKeeper()];
    const first = await restarted(workspaces, keeper);
    await first.run(named);
    const session = { session: named.sessionId, project: undefined };
    await first.runner.visit(session, "the operator", async (_sandbox, _signal, begin) => begin());
    await first.runner.drain(0);
    await using second = await restarted(workspaces, keeper);
    const { result } = await second.run(named);
    const message = expect.stringContaining("the operator had a terminal");
    expect(result.warnings).toMatchObject([{ path: "sessionId", message }]);
    expect((await second.run(named)).result.warnings).toBeUndefined();
  });

  test.each([
    [
      "can't be kept",
      (workspaces: FakeWorkspaces) => Object.assign(workspaces, { failure: "too large" }),
      "too large",
    ],
    ["are gone", (workspaces: FakeWorkspaces) => workspaces, "aren't kept any more"],
  ])("and the next run says so where they %s", async (_what, spoil, why) => {
    const [workspaces, keeper] = [new FakeWorkspaces(), new FakeKeeper()];
    const one = await restarted(workspaces, keeper);
    await one.run(named);
    spoil(workspaces);
    await one.runner.drain(0);
    workspaces.kept.clear();
    await using two = await restarted(workspaces, keeper);
    const { result } = await two.run(named);
    expect(result.warnings).toMatchObject([{ path: "sessionId", message: expect.stringContaining(why) }]);
    expect((await two.run(named)).result.warnings).toBeUndefined();
  });

  test("holds a session until its files are packed", async () => {
    const [workspaces, keeper] = [new FakeWorkspaces(), new FakeKeeper()];
    const [packing, packed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const one = await restarted(workspaces, keeper);
    await one.run(named);
    const take = workspaces.snapshots.take;
    Object.assign(workspaces.snapshots, {
      take: async (...from: Parameters<typeof take>) => {
        packing.resolve();
        await packed.promise;
        return take(...from);
      },
    });
    const drained = one.runner.drain(0);
    await packing.promise;
    // The store releases what isn't open.
    expect(one.runner.sessions).toEqual([{ session: "one", project: undefined }]);
    packed.resolve();
    await drained;
    expect(one.runner.sessions).toEqual([]);
  });

  test("keeps the session of a run whose end outlasts its result", async () => {
    const [workspaces, keeper] = [new FakeWorkspaces(), new FakeKeeper()];
    const written = Promise.withResolvers<void>();
    let keptAtClose: number | undefined;
    const sandbox: SandboxBehaviour = {
      remains: "its files",
      onClose: () => {
        keptAtClose = workspaces.kept.size;
      },
    };
    const script = async function* (): AsyncGenerator<AgentEvent> {
      keeper.isWritten = written.promise;
      yield { type: "message", text: "x" };
      yield { type: "done", stopReason: "end_turn" };
    };
    const one = await createWorld({ script, sandbox, rules: { workspaces } });
    one.runner.keepSessionsIn(keeper);
    await one.run(named);
    const drained = one.runner.drain(0);
    written.resolve();
    await drained;
    expect(keptAtClose).toBe(1);
    expect(keeper.record).toMatchObject({ suspended: "snapshot-0" });
  });
});

describe("a runner that was killed", () => {
  const start = async (keeper: FakeKeeper, sandbox: SandboxBehaviour = { remains: "its files" }) => {
    keeper.fence += 1;
    const world = await createWorld({ script: says("ok"), sandbox });
    world.runner.keepSessionsIn(keeper);
    return world;
  };

  test("leaves the files of a session, which the next one goes on with", async () => {
    const keeper = new FakeKeeper();
    const one = await start(keeper);
    await one.run(named);
    expect(keeper).toMatchObject({ when: "owner_lost", record: { isEmpty: false, remains: "its files" } });
    await using two = await start(keeper);
    const { result } = await two.run(named);
    expect(result).toMatchObject({ ok: true, receipt: { session: { history: "loaded" } } });
    expect(result.warnings).toBeUndefined();
    expect(two.sandbox.specs).toMatchObject([{ id: one.sandbox.specs[0]?.id, remains: "its files" }]);
  });

  test.each<[string, SandboxBehaviour, object, string]>([
    [
      "can't be taken over",
      {
        remains: "its files",
        onOpen: ({ remains }) => {
          if (remains !== undefined) throw new SandboxFailed("They are gone");
        },
      },
      {},
      "its files could not be taken over (They are gone)",
    ],
    ["are unknown to the backend of now", {}, {}, "ignored `remains`"],
    ["are of another boundary", { remains: "its files" }, closed, "under another boundary"],
  ])("and the next run says so where they %s", async (_what, sandbox, more, why) => {
    const keeper = new FakeKeeper();
    const one = await start(keeper);
    await one.run(named);
    await using two = await start(keeper, sandbox);
    const { result } = await two.run({ ...named, ...more });
    expect(result.ok).toBe(true);
    expect(result.warnings).toMatchObject([{ path: "sessionId", message: expect.stringContaining(why) }]);
    expect((await two.run({ ...named, ...more })).result.warnings).toBeUndefined();
  });

  test("leaves nothing of a session whose workspace wasn't filled yet", async () => {
    const keeper = new FakeKeeper();
    const one = await start(keeper);
    await one.run(named);
    Object.assign(Object(keeper.record), { isEmpty: true });
    await using two = await start(keeper);
    const { result } = await two.run(named);
    expect(result.ok).toBe(true);
    expect(result.warnings).toBeUndefined();
    expect(two.sandbox.specs).toMatchObject([{ remains: undefined }]);
  });
});

test("a prompt that never reached the agent leaves it as it was", async () => {
  let writes = true;
  const onWriteFiles = () => {
    if (!writes) throw new OutputsFailed("not written");
  };
  await using world = await createWorld({ script: says("ok"), sandbox: { onWriteFiles } });
  await world.run(named);
  writes = false;
  const files = { harnessFiles: [{ path: "a", content: "b" }] };
  expect((await world.run({ ...named, ...files })).result.ok).toBe(false);
  writes = true;
  const { result } = await world.run(named);
  expect(result.receipt?.session.history).toBe("warm");
});
