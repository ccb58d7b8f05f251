import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import type { Domain, ToolExecutor, ToolScope } from "@ambit/core/plugin";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { executeCase } from "../src/executor/execute.js";
import {
  claimsWithoutAttack,
  type ExecutorAttack,
  tryExecutorAttack,
} from "../src/executor/executor-attack.js";
import { type OpenWorld, openWorld } from "../src/executor/world.js";

const tool = { name: "act", kind: "acting" };

/** Declares that it touches nothing, but does. */
function acting(act: (scope: ToolScope) => unknown): ToolExecutor {
  return {
    name: "acting",
    kind: "acting",
    site: "runner",
    claims: [],
    touches: () => [],
    gaps: () => [],
    issues: () => [],
    probe: async () => [],
    execute: async (_call, scope) => {
      await act(scope);
      return { status: "completed", output: "done" };
    },
  };
}

describe("the domains in which an executor acts", () => {
  let world: OpenWorld;
  beforeAll(async () => {
    world = await openWorld();
  });
  afterAll(() => world.close());

  const port = () => Number(new URL(world.url).port);
  it.each<[what: string, act: (scope: ToolScope) => unknown, seen: readonly Domain[]]>([
    ["nothing", () => undefined, []],
    ["a request", () => fetch(world.url), ["network"]],
    ["a connection that sends nothing", () => closed(port()), ["network"]],
    ["a process of the runner", () => new Promise((resolve) => execFile("true", resolve)), ["process"]],
    ["a file of its own", () => writeFileSync(join(world.folder, `f${Math.random()}`), "x"), ["filesystem"]],
    [
      "a process inside",
      ({ sandbox }) => sandbox.spawn({ argv: ["/bin/true"], env: {} }).then((one) => one.exit),
      ["process"],
    ],
    [
      "a process inside with variables",
      ({ sandbox }) => sandbox.spawn({ argv: ["/bin/true"], env: { A: "1" } }).then((one) => one.exit),
      ["process", "environment"],
    ],
    [
      "a file inside",
      ({ sandbox }) => sandbox.writeFiles([{ path: `${sandbox.workspace}/x`, content: "x" }]),
      ["filesystem"],
    ],
  ])("is seen: %s", async (_what, act, seen) => {
    const { observed, outcome } = await executeCase(
      acting(act),
      { name: "act", tool, status: "completed" },
      world,
    );
    expect(outcome.status).toBe("completed");
    expect([...observed].sort()).toEqual([...seen].sort());
  });

  it("throws if an executor changes its input", async () => {
    const changing: ToolExecutor = {
      ...acting(() => undefined),
      execute: async (call) => {
        Object.assign(call.arguments, { more: 1 });
        return { status: "completed", output: "" };
      },
    };
    await expect(executeCase(changing, { name: "change", tool, status: "completed" }, world)).rejects.toThrow(
      TypeError,
    );
  });
});

describe("an executor on the runner that claims more than the network", () => {
  let world: OpenWorld;
  beforeAll(async () => {
    world = await openWorld();
  });
  afterAll(() => world.close());
  const claims = ["filesystem.read-only", "filesystem.host-hidden"] as const;
  /** Claims that a boundary hides the host's files, and reads them. */
  const lying: ToolExecutor = {
    ...acting(() => undefined),
    claims,
    execute: async ({ arguments: given }) => ({
      status: "completed",
      output: readFileSync(String(given.path), "utf8"),
    }),
  };
  const honest: ToolExecutor = {
    ...lying,
    execute: async (call, scope) =>
      scope.boundary.filesystem.mode === "on"
        ? await lying.execute(call, scope)
        : { status: "failed", output: "not within this boundary" },
  };
  const attack = (): ExecutorAttack => ({
    name: "read the host's users",
    capability: "filesystem.host-hidden",
    tool,
    arguments: { path: "/etc/passwd" },
    permission: { filesystem: "readonly" },
    reached: (outcome) => outcome.status === "completed" && outcome.output.includes("root:"),
  });

  it("needs an attack on each of these claims", () => {
    expect(claimsWithoutAttack(lying, [])).toEqual(claims);
    expect(claimsWithoutAttack(lying, [attack()])).toEqual(["filesystem.read-only"]);
    expect(claimsWithoutAttack({ ...lying, claims: ["network.allow-host"] }, [])).toEqual([]);
    expect(claimsWithoutAttack({ ...lying, site: "sandbox" }, [])).toEqual([]);
  });

  it.each([
    ["is caught if it enforces none", lying, true],
    ["passes if it does", honest, false],
  ])("%s", async (_what, executor, guarded) => {
    expect(await tryExecutorAttack(executor, attack(), world)).toEqual({ control: true, guarded });
  });
});

/** Connects and disconnects: the server sees no request. */
function closed(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => socket.destroy());
    socket.on("close", () => resolve());
    socket.on("error", reject);
  });
}
