// needs: jail
import { chmod, mkdir, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Process, Sandbox } from "@ambit/core/plugin";
import { describe, expect, onTestFinished, test } from "vitest";
import { configSchema } from "../../../src/config.js";
import { WorkspaceRules } from "../../../src/confined/files/workspace-rules.js";
import { closed, openConfined, path, run, shell, temporaryFolder } from "../../support/specs.js";

const { filesystem } = closed;

async function rulesFor(
  overrides: Partial<typeof filesystem> = {},
): Promise<{ folder: string; rules: WorkspaceRules }> {
  const folder = await temporaryFolder();
  const options = {
    folder,
    filesystem: { ...filesystem, ...overrides },
    config: configSchema.parse({}),
    owner: undefined,
  };
  return { folder, rules: new WorkspaceRules(options) };
}

describe("what jails mount in the workspace", () => {
  test("stays the same as long as one of them lives, and is looked for again after the last one", async () => {
    const { folder, rules } = await rulesFor({ readable: ["late"] });
    const first = await rules.hold("agent");
    await writeFile(join(folder, ".mcp.json"), "{}");
    await mkdir(join(folder, "late"));
    const second = await rules.hold("tool");
    first.release();
    first.release();
    const third = await rules.hold("agent");
    expect([first, second, third].map(({ mounts }) => mounts)).toEqual([[], [], []]);
    second.release();
    third.release();
    expect((await rules.hold("tool")).mounts.map((mount) => mount.path)).toEqual(["late", ".mcp.json"]);
  });

  test("is determined once by jails that start at the same time", async () => {
    const { folder, rules } = await rulesFor();
    const both = Promise.all([rules.hold("tool"), rules.hold("tool")]);
    await writeFile(join(folder, ".idea"), "");
    const [one, other] = await both;
    expect(other.mounts).toBe(one.mounts);
  });

  test("is looked for again after it was refused, and no descriptor is left open", async () => {
    const { folder, rules } = await rulesFor({ readable: ["docs"], denied: ["a/b"] });
    const open = async () => (await readdir("/proc/self/fd")).length;
    await symlink("/etc", join(folder, "docs"));
    await rules.hold("tool").catch(() => undefined);
    const before = await open();
    for (let each = 0; each < 20; each++) {
      await expect(rules.hold("tool")).rejects.toThrow("without following links");
    }
    expect(await open()).toBeLessThanOrEqual(before + 2);
    await rm(join(folder, "docs"));
    expect((await rules.hold("tool")).mounts).toHaveLength(2);
  });
});

/** A process of the agent that lives until its input ends. */
async function agentIn(sandbox: Sandbox, script: string): Promise<Process> {
  const agent = await sandbox.spawn({
    argv: shell(`${script}; echo up; read -r _; echo "$(cat late 2>/dev/null) $(cat .mcp.json)"`),
    env: { PATH: path },
    role: "agent",
  });
  onTestFinished(() => agent.kill());
  expect(await nextOf(agent)).toBe("up\n");
  return agent;
}

async function nextOf({ stdout }: Process): Promise<string> {
  const reader = stdout.getReader();
  const { value } = await reader.read();
  reader.releaseLock();
  return new TextDecoder().decode(value);
}

/** What the agent sees before it ends. */
async function lastWordsOf(agent: Process): Promise<string> {
  await agent.stdin.close();
  const words = await nextOf(agent);
  await agent.exit;
  return words;
}

const mounted = shell("grep -o ' /workspace/[^ ]*' /proc/self/mountinfo; echo ran");

test("a path that an agent creates becomes protected when none of the session's jails lives", async () => {
  const sandbox = await openConfined({ filesystem: { ...filesystem, readable: ["late"] } });
  const agent = await agentIn(sandbox, "echo x > .mcp.json; echo y > late");
  expect((await run(sandbox, mounted)).stdout).toBe("ran\n");
  expect(await lastWordsOf(agent)).toBe("y x\n");
  expect((await run(sandbox, mounted)).stdout).toBe(" /workspace/late\n /workspace/.mcp.json\nran\n");
});

test("a protected path that the runner replaces while a jail lives keeps no later jail from starting", async () => {
  const sandbox = await openConfined();
  await sandbox.writeFiles([{ path: "/workspace/.mcp.json", content: "first" }]);
  const agent = await agentIn(sandbox, ":");
  await sandbox.writeFiles([{ path: "/workspace/.mcp.json", content: "second" }]);
  const { stdout } = await run(sandbox, shell("echo x >> .mcp.json; cat .mcp.json; echo; echo ran"));
  expect(stdout).toBe("second\nran\n");
  expect(await lastWordsOf(agent)).toBe(" second\n");
});

test("a workspace of folders that their owner closed is mounted as before", async () => {
  const { folder, rules } = await rulesFor();
  await mkdir(join(folder, ".git/hooks"), { recursive: true });
  await chmod(join(folder, ".git"), 0o000);
  await chmod(folder, 0o000);
  expect((await rules.hold("tool")).mounts.map((mount) => mount.path)).toEqual([".git", ".git/hooks"]);
});
