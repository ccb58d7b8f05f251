import type { PrewarmClaim, SandboxContents } from "@ambit/core/plugin";
import { says } from "@ambit/fakes/harness";
import { expect, it, vi } from "vitest";
import { createWorld, type WorldOptions } from "../fakes/world.js";

const boundary = { network: "off", filesystem: "workspace" } as const;
const ready = (agents: number, idleMs = 60_000) => ({
  agents,
  idleMs,
  tools: false,
  request: { sandboxPermission: boundary },
});

/** A runner whose agents wait already. */
async function warmWorld(agents: number, options: WorldOptions = {}) {
  const claims: PrewarmClaim[] = [];
  const observer = {
    name: "claims",
    observe: () => undefined,
    prewarmed: (claim: PrewarmClaim) => void claims.push(claim),
  };
  const world = await createWorld({
    script: says("ok"),
    ...options,
    observers: [observer],
    harness: { prewarm: [ready(agents)], ...options.harness },
  });
  world.runner.prewarm();
  const waits = (count: number) =>
    vi.waitFor(() => expect(world.runner.state().prewarmed).toBe(count), 10_000);
  return {
    ...world,
    waits,
    claimed: () => claims.map(({ outcome }) => outcome),
    run: (body: object = {}) => world.run({ sandboxPermission: boundary, ...body }),
    /** The ids of sandboxes that agents were started ahead in. */
    ahead: () =>
      world.sandbox.specs.filter(({ isUnclaimed }) => isUnclaimed?.() === true).map(({ id }) => id),
  };
}

it("gives an agent to one run only, and starts another for the next", async () => {
  await using world = await warmWorld(1);
  await world.waits(1);
  const [id] = world.ahead();
  const first = await world.run();
  expect(first.result.ok).toBe(true);
  expect(world.harness.starts[0]?.prepared).toBeDefined();
  await world.waits(1);
  expect(world.ahead()).not.toContain(id);
  const second = await world.run();
  expect(second.result.ok).toBe(true);
  expect(world.harness.starts[1]?.prepared).not.toBe(world.harness.starts[0]?.prepared);
  expect(world.claimed()).toEqual(["hit", "hit"]);
});

it("plans for nobody: the agent gets the deployer's request, and no tools of a run", async () => {
  await using world = await warmWorld(1);
  await world.waits(1);
  await world.run({ messages: [{ role: "user", content: "a caller's secret" }], sessionId: "s-1" });
  expect(world.harness.prepared).toHaveLength(1);
  expect(JSON.stringify(world.harness.prepared)).not.toContain("a caller's secret");
  expect(world.harness.prepared[0]).toMatchObject({ serverNames: [], deniesTools: false });
});

it("gives two runs that ask at once two agents", async () => {
  await using world = await warmWorld(2);
  await world.waits(2);
  const runs = await Promise.all([world.run(), world.run(), world.run()]);
  expect(runs.every(({ result }) => result.ok)).toBe(true);
  const used = world.harness.starts.flatMap(({ prepared }) => prepared ?? []);
  expect(new Set(used).size).toBe(2);
  expect(world.claimed().toSorted()).toEqual(["hit", "hit", "miss"]);
});

it.each([
  ["another boundary", { sandboxPermission: { network: "off", filesystem: "readonly" } }],
  [
    "an allowlist",
    {
      sandboxPermission: {
        network: { mode: "allowlist", allowlist: ["example.com"] },
        filesystem: "workspace",
      },
    },
  ],
  ["other limits", { sandboxPermission: { ...boundary, resources: { memoryMb: 512 } } }],
  ["no boundary", { sandboxPermission: undefined }],
])("starts a new agent for a run with %s", async (_what, body) => {
  await using world = await warmWorld(1);
  await world.waits(1);
  const { result } = await world.run(body);
  expect(result.ok).toBe(true);
  expect(world.harness.starts[0]?.prepared).toBeUndefined();
  expect(world.claimed()).toEqual(["miss"]);
  expect(world.runner.state().prewarmed).toBe(1);
});

it("starts a new agent for a run that would start it differently", async () => {
  await using world = await warmWorld(1, {
    harness: { ahead: { misfit: () => "its environment differs in NAME" } },
  });
  await world.waits(1);
  expect((await world.run()).result.ok).toBe(true);
  expect(world.harness.starts[0]?.prepared).toBeUndefined();
  const line = {
    level: "debug",
    fields: { harness: "scripted", misfits: ["its environment differs in NAME"] },
  };
  expect(world.log.lines).toContainEqual(expect.objectContaining(line));
});

const looks: readonly (readonly [string, SandboxContents | Error, string])[] = [
  [
    "wrote to its workspace",
    { files: ["/workspace/a"], processes: 1 },
    "it wrote /workspace/a in its workspace",
  ],
  ["can't be looked at", new Error("gone"), "its sandbox couldn't show what is in it"],
];
it.each(looks)("refuses an agent that %s, and starts a new one", async (_what, found, fault) => {
  const onContents = () => {
    if (found instanceof Error) throw found;
    return found;
  };
  await using world = await warmWorld(1, { sandbox: { onContents } });
  await world.waits(1);
  expect((await world.run()).result.ok).toBe(true);
  expect(world.harness.starts[0]?.prepared).toBeUndefined();
  expect(world.claimed()).toEqual(["refused", "miss"]);
  const warning = { level: "warn", fields: { harness: "scripted", fault } };
  expect(world.log.lines).toContainEqual(expect.objectContaining(warning));
  expect(world.sandbox.opened).toBe(2);
});

it("refuses an agent that tried to connect, and one whose harness finds something", async () => {
  await using world = await warmWorld(1, {
    harness: { ahead: { fault: () => "it has 2 processes instead of 1" } },
  });
  await world.waits(1);
  const [spec] = world.sandbox.specs;
  expect(spec?.isUnclaimed?.()).toBe(true);
  spec?.onDecision({ target: "evil.example:443", allowed: false, reason: "no" });
  expect((await world.run()).result).toMatchObject({ ok: true, receipt: { decisions: { refused: 0 } } });
  expect(world.claimed()).toEqual(["refused", "miss"]);
  expect(JSON.stringify(world.log.lines)).toContain("it tried to connect to evil.example:443");
});

it("ends a waiting agent for a run whose place it takes, and starts it again afterwards", async () => {
  await using world = await warmWorld(1, { limits: { concurrentRuns: 1 } });
  await world.waits(1);
  const other = await world.admit({ sandboxPermission: { network: "off" } });
  await world.tell(other);
  expect(world.harness.starts[0]?.prepared).toBeUndefined();
  expect(world.sandbox.closed).toBeGreaterThan(0);
  await world.waits(1);
});

it("starts no more agents than runs could begin", async () => {
  await using world = await warmWorld(5, { limits: { concurrentRuns: 2 } });
  await world.waits(2);
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(world.sandbox.opened).toBe(2);
});

it("ends an agent that nobody asks for, until a run asks", async () => {
  await using world = await warmWorld(0, { harness: { prewarm: [ready(1, 30)] } });
  await vi.waitFor(() => expect(world.sandbox.closed).toBe(1), 10_000);
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(world.sandbox.opened).toBe(1);
  await world.run();
  await vi.waitFor(() => expect(world.harness.prepared.length).toBeGreaterThan(1), 10_000);
});

it("leaves nothing when a run is cancelled while its agent is looked at", async () => {
  const asked = Promise.withResolvers<void>();
  const never = new Promise<SandboxContents>(() => undefined);
  const onContents = () => {
    asked.resolve();
    return never;
  };
  await using world = await warmWorld(1, { sandbox: { onContents } });
  await world.waits(1);
  const run = await world.admit({ sandboxPermission: boundary });
  const told = world.tell(run);
  await asked.promise;
  world.runner.cancel(run.key);
  expect((await told).result).toMatchObject({ stopReason: "cancelled" });
  await vi.waitFor(() => expect(world.sandbox.closed).toBe(1), 10_000);
});

it("ends those that wait, and those that are being started, when the runner drains", async () => {
  const begun = Promise.withResolvers<void>();
  let starts = 0;
  const onPrepare = async () => {
    starts += 1;
    if (starts < 2) return;
    begun.resolve();
    await new Promise(() => undefined);
  };
  const world = await warmWorld(2, { harness: { prewarm: [ready(2)], onPrepare } });
  await begun.promise;
  await world.runner.drain(0);
  expect(world.sandbox.opened).toBe(2);
  expect(world.sandbox.closed).toBe(2);
  expect(world.runner.state().prewarmed).toBe(0);
});

it("ends what was started with an actor that is in doubt", async () => {
  await using world = await warmWorld(1, {
    harness: {
      onStart: ({ prepared }) => {
        if (prepared === undefined) throw new Error("broken");
      },
    },
  });
  await world.waits(1);
  const [spec] = world.sandbox.specs;
  const failed = await world.run({ sandboxPermission: { network: "off" } });
  expect(failed.result.ok).toBe(false);
  await vi.waitFor(
    () => expect(spec?.isUnclaimed?.() === true && world.sandbox.closed >= 2).toBe(true),
    10_000,
  );
});

it("tries again, ever more rarely, where none can be started", async () => {
  const onPrepare = () => Promise.reject(new Error("no such program"));
  await using world = await warmWorld(1, { harness: { prewarm: [ready(1)], onPrepare } });
  await vi.waitFor(() => expect(world.harness.prepared.length).toBe(1), 10_000);
  expect((await world.run()).result.ok).toBe(true);
  await vi.waitFor(() => expect(world.harness.prepared.length).toBeGreaterThan(1), 10_000);
  expect(world.sandbox.opened).toBe(world.sandbox.closed);
});

it.each([
  [
    { sandboxPermission: { network: "on" } },
    "sandboxPermission.network",
    "the network of an agent that belongs to no run",
  ],
  [{ sandboxPermission: { netwrk: "off" } }, "sandboxPermission.netwrk", ""],
])("names what is wrong with a deployer's request: %j", async (request, path, message) => {
  await using world = await createWorld({ harness: { prewarm: [{ ...ready(1), request }] } });
  const [issue] = world.runner.prewarmIssues;
  expect(issue?.path).toBe(`prewarm.scripted[0].request.${path}`);
  expect(issue?.message).toContain(message);
});

it("starts no agent ahead while the host is short of memory, and runs begin nevertheless", async () => {
  let asked = 0;
  const freeMemory = () => {
    asked += 1;
    return 0.05;
  };
  await using world = await warmWorld(2, { freeMemory });
  await vi.waitFor(() => expect(asked).toBeGreaterThan(0), 10_000);
  expect((await world.run()).result.ok).toBe(true);
  expect(world.harness.prepared).toEqual([]);
  expect(world.claimed()).toEqual(["miss"]);
});

it("gives back the memory of an agent that waits when the host becomes short of it", async () => {
  let free = 0.5;
  await using world = await warmWorld(2, { freeMemory: () => free });
  await world.waits(2);
  free = 0.05;
  // A run takes one. The pool then looks at the memory, and ends the other.
  expect((await world.run()).result.ok).toBe(true);
  await world.waits(0);
  expect(world.harness.prepared).toHaveLength(2);
});
