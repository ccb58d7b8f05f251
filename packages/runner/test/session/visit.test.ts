import { SandboxFailed } from "@ambit/core";
import type { RunRequest } from "@ambit/core/contract";
import { says } from "@ambit/fakes/harness";
import { expect, it } from "vitest";
import type { SessionKeeper } from "../../src/session/session.js";
import { createWorld } from "../fakes/world.js";

const boundary = { network: "off", filesystem: "workspace" } as const;
const name = { session: "kept", project: undefined };
const turn = { sessionId: "kept", sandboxPermission: boundary };

it("lends an idle session to a person alone, and warns its next run once", async () => {
  await using world = await createWorld({ script: says("ok") });
  await world.run(turn);
  const visited = world.runner.visit(name, "the operator", async (sandbox, signal, begin) => {
    begin();
    const { result } = await world.run(turn);
    expect(result).toMatchObject({ ok: false, failure: { code: "session_in_use" } });
    const again = world.runner.visit(name, "another", async () => {});
    await expect(again).rejects.toThrow("a terminal of the operator: close it");
    return [sandbox.confinement, signal.aborted];
  });
  expect(await visited).toEqual(["confined", false]);
  const warned = expect.objectContaining({
    path: "sessionId",
    message: expect.stringContaining("the operator had a terminal, from "),
  });
  expect((await world.run(turn)).result).toMatchObject({ warnings: [warned] });
  expect((await world.run(turn)).result.warnings ?? []).toEqual([]);
  expect(await world.runner.visit({ ...name, session: "none" }, "the operator", async () => {})).toBe(
    undefined,
  );
});

it("ends with the session, and with the runner", async () => {
  await using world = await createWorld({ script: says("ok") });
  /** Resolves once the visit has begun. */
  const untilAborted = async () => {
    const beginning = Promise.withResolvers<void>();
    const ended = world.runner.visit(name, "the operator", async (_sandbox, signal) => {
      beginning.resolve();
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      return String(signal.reason);
    });
    await Promise.race([beginning.promise, ended]);
    return { ended };
  };
  await world.run(turn);
  const { ended } = await untilAborted();
  expect(await world.runner.endSession("kept")).toBe(true);
  expect(await ended).toContain("The session was ended.");
  await world.run(turn);
  const drained = await untilAborted();
  await world.runner.drain(0);
  expect(await drained.ended).toContain("The runner is shutting down.");
  await expect(untilAborted()).rejects.toThrow("shutting down");
});

it("isn't lent where its workspace is a folder of the host", async () => {
  const workspaceFolderOf = ({ sessionId }: RunRequest) => (sessionId === "here" ? "/srv/app" : undefined);
  await using world = await createWorld({ script: says("ok"), rules: { workspaceFolderOf } });
  await world.run({ ...turn, sessionId: "here" });
  await world.run(turn);
  const visit = (session: string) => world.runner.visit({ ...name, session }, "me", async () => "done");
  await expect(visit("here")).rejects.toThrow("whose workspace is a folder of the host");
  // The control: another one is.
  expect(await visit("kept")).toBe("done");
});

it("says nothing of a person who couldn't begin", async () => {
  await using world = await createWorld({ script: says("ok") });
  await world.run(turn);
  const visit = world.runner.visit(name, "the operator", async () => {
    throw new Error("the sandbox has no shell");
  });
  await expect(visit).rejects.toThrow("no shell");
  expect((await world.run(turn)).result.warnings ?? []).toEqual([]);
});

it("ends when its sandbox can't enforce its boundary any more, and the session with it", async () => {
  await using world = await createWorld({ script: says("ok") });
  await world.run(turn);
  const visit = world.runner.visit(name, "the operator", async (_sandbox, signal) => {
    const ended = new Promise((resolve) => signal.addEventListener("abort", resolve));
    world.sandbox.specs[0]?.onFailure?.(new SandboxFailed("the gate has ended", { concerns: "session" }));
    await ended;
    return String(signal.reason);
  });
  expect(await visit).toContain("the gate has ended");
  expect(world.sandbox.closed).toBe(1);
});

it("doesn't hold up its session's end, nor the runner's, beyond their time", async () => {
  await using world = await createWorld({ script: says("ok") });
  await world.run(turn);
  const ends: (() => void)[] = [];
  const visit = world.runner.visit(name, "the operator", async (_sandbox, _signal, begin) => {
    begin();
    await new Promise<void>((resolve) => ends.push(resolve));
  });
  await expect.poll(() => ends.length).toBe(1);
  expect(await world.runner.endSession("kept")).toBe(true);
  expect(world.sandbox.closed).toBe(1);
  ends[0]?.();
  await visit;
  // It was ended by its user, so that nothing of it is missing.
  const { result } = await world.run(turn);
  expect(result).toMatchObject({ ok: true, receipt: { session: { history: "new" } } });
  expect(result.warnings).toBeUndefined();
});

it("leaves its session to another runner however long the store takes", async () => {
  const sandbox = { handover: "where it is" };
  await using world = await createWorld({ script: says("ok"), sandbox, limits: { closeMs: 10 } });
  const stored = Promise.withResolvers<boolean>();
  let isDown = false;
  world.runner.keepSessionsIn({
    holding: () => ({ fence: 1 }),
    keep: () => (isDown ? stored.promise : Promise.resolve(true)),
    use: async (_name, use) => use,
    closed: async () => {},
    onClosed: () => {},
  });
  await world.run(turn);
  const beginning = Promise.withResolvers<void>();
  const visit = world.runner.visit(name, "the operator", async (_sandbox, signal) => {
    beginning.resolve();
    isDown = true;
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
  });
  await beginning.promise;
  const drained = world.runner.drain(0);
  setTimeout(() => stored.resolve(true), 50);
  await drained;
  await visit;
  expect(world.sandbox).toMatchObject({ closed: 0, left: 1 });
});

it("keeps other runners from the session, and leaves it to them afterwards", async () => {
  await using world = await createWorld({ script: says("ok"), sandbox: { remains: "files-1" } });
  const writes: unknown[] = [];
  let isOurs = true;
  const keeper: SessionKeeper = {
    holding: () => ({ fence: 1 }),
    keep: async (_name, _fence, _record, when) => {
      writes.push(when);
      return isOurs;
    },
    use: async (_name, use) => use,
    closed: async () => {},
    onClosed: () => {},
  };
  world.runner.keepSessionsIn(keeper);
  await world.run(turn);
  writes.length = 0;
  await world.runner.visit(name, "the operator", async () => writes.push("visit"));
  expect(writes).toEqual(["owner_lost", "visit", "owner_lost"]);
  isOurs = false;
  // Another runner has it already.
  expect(await world.runner.visit(name, "the operator", async () => "done")).toBe(undefined);
  expect(world.sandbox.closed).toBe(1);
});
