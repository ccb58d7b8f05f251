import type { RunRequest } from "@ambit/core/contract";
import { says } from "@ambit/fakes/harness";
import { expect, it } from "vitest";
import { createWorld } from "../fakes/world.js";

const boundary = { network: "off", filesystem: "workspace" } as const;
const name = { session: "kept", project: undefined };
const turn = { sessionId: "kept", sandboxPermission: boundary };

it("lends an idle session to a person alone, and warns its next run once", async () => {
  await using world = await createWorld({ script: says("ok") });
  await world.run(turn);
  const visited = world.runner.visit(name, "the operator", async (sandbox, signal) => {
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
  const untilAborted = () =>
    world.runner.visit(name, "the operator", async (_sandbox, signal) => {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      return String(signal.reason);
    });
  await world.run(turn);
  const ended = untilAborted();
  expect(await world.runner.endSession("kept")).toBe(true);
  expect(await ended).toContain("The session was ended.");
  await world.run(turn);
  const drained = untilAborted();
  await world.runner.drain(0);
  expect(await drained).toContain("The runner is shutting down.");
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
