import type { RunRequest } from "@ambit/core/contract";
import { says } from "@ambit/fakes/harness";
import { expect, it, vi } from "vitest";
import { FakeWorkspaces } from "../fakes/workspaces.js";
import { createWorld } from "../fakes/world.js";

const boundary = { network: "off", filesystem: "workspace" } as const;
/** Sessions that work in a folder of the user's. */
const workspaceFolderOf = ({ sessionId = "" }: RunRequest) =>
  sessionId.startsWith("here") ? "/srv/app" : undefined;
const here = { sessionId: "here-1", sandboxPermission: boundary };

it("leaves no process in the user's folder between two runs, and goes on with the conversation", async () => {
  await using world = await createWorld({ script: says("ok"), rules: { workspaceFolderOf } });
  await world.run({ ...here, sessionId: "elsewhere" });
  // Control: another session keeps its agent.
  expect(world.harness.closed).toBe(0);
  await world.run(here);
  expect(world.harness.closed).toBe(1);
  expect(world.sandbox.closed).toBe(0);
  const { result } = await world.run(here);
  expect(result.receipt?.session.history).toBe("loaded");
  expect(world.sandbox.specs.map(({ workspaceFolder }) => workspaceFolder)).toEqual([undefined, "/srv/app"]);
});

it("copies only the home into another sandbox: the folder is there already", async () => {
  const workspaces = new FakeWorkspaces();
  const rules = { workspaceFolderOf, workspaces };
  await using world = await createWorld({ script: says("ok"), rules });
  const more = { ...boundary, resources: { processes: 100 } };
  await world.run(here);
  const { result } = await world.run({ ...here, sandboxPermission: more });
  expect(result.receipt?.session.history).toBe("loaded");
  expect(workspaces.copied).toEqual(["home"]);
});

it("uses no sandbox that was started ahead, since its workspace is another folder", async () => {
  const request = { sandboxPermission: boundary };
  await using world = await createWorld({
    script: says("ok"),
    rules: { workspaceFolderOf },
    harness: { prewarm: [{ agents: 1, idleMs: 60_000, tools: false, request }] },
  });
  world.runner.prewarm();
  await vi.waitFor(() => expect(world.runner.state().prewarmed).toBe(1), 10_000);
  await world.run(here);
  expect(world.harness.starts[0]?.prepared).toBeUndefined();
  expect(world.sandbox.specs.at(-1)?.workspaceFolder).toBe("/srv/app");
});
