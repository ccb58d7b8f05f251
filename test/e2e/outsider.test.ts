// needs: jail
import { copyFile, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { execa } from "execa";
import { beforeAll, describe, expect, it } from "vitest";
import { ambit, demo, emptyFolder, repository } from "./support/ambit.js";

/** The packed core: what a registry would hand out. */
let packed = "";

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), "ambit-packed-"));
  const { stdout } = await execa(
    "npm",
    ["pack", "--json", "--ignore-scripts", "--pack-destination", folder],
    { cwd: join(repository, "core") },
  );
  const [{ filename }]: [{ filename: string }] = JSON.parse(stdout);
  packed = join(folder, filename);
  return () => rm(folder, { recursive: true });
});

/** A deployer's folder with core as published, the plugin, and a configuration that names it. */
async function deployment(config: unknown): Promise<string> {
  const folder = await emptyFolder();
  const core = join(folder, "node_modules/@ambit/core");
  const plugin = join(folder, "node_modules/ambit-plugin-lookup");
  await mkdir(core, { recursive: true });
  await mkdir(plugin, { recursive: true });
  await execa("tar", ["-xzf", packed, "-C", core, "--strip-components=1"]);
  const { dependencies }: { dependencies: Record<string, string> } = JSON.parse(
    await readFile(join(core, "package.json"), "utf8"),
  );
  for (const name of Object.keys(dependencies)) {
    await mkdir(dirname(join(folder, "node_modules", name)), { recursive: true });
    await symlink(join(repository, "node_modules", name), join(folder, "node_modules", name));
  }
  await copyFile(join(repository, "test/e2e/outsider/plugin.mjs"), join(plugin, "index.mjs"));
  await writeFile(
    join(plugin, "package.json"),
    JSON.stringify({ name: "ambit-plugin-lookup", version: "1.0.0", exports: "./index.mjs" }),
  );
  await writeFile(
    join(folder, "ambit.config.json"),
    JSON.stringify({
      plugins: [
        "@ambit/sandbox-local",
        "@ambit/harness-acp",
        "@ambit/mcp-http",
        { use: "ambit-plugin-lookup", config },
      ],
    }),
  );
  return folder;
}

const find = { name: "find", kind: "lookup", permission: "allow", inputSchema: { type: "object" } };

describe("a plugin from outside the repository", () => {
  it("is loaded by name from the deployer's folder, and runs", async () => {
    const cwd = await deployment({ entries: { alpha: "the first" } });
    const input = {
      ...demo('call find {"key": "alpha"}', 'call find {"key": "omega"}'),
      customTools: [find],
    };
    const { code, stdout, stderr } = await ambit(["run", "-"], { cwd, input });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const { events, receipt } = JSON.parse(stdout);
    const results = events.filter(({ type }: { type: string }) => type === "tool_result");
    expect(results).toEqual([
      expect.objectContaining({ output: "the first" }),
      expect.objectContaining({ output: "There is no such key; known are alpha.", isError: true }),
    ]);
    expect(receipt.actors).toContainEqual(
      expect.objectContaining({ kind: "executor", name: "lookup", site: "runner", subjects: ["find"] }),
    );
  });

  it("has its configuration and tools checked by its own schemas", async () => {
    const wrong = await ambit(["plugins"], { cwd: await deployment({ entires: {} }) });
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toContain("lookup (ambit-plugin-lookup): its config: entries");
    const cwd = await deployment({ entries: {} });
    const input = { ...demo("say hi"), customTools: [{ ...find, options: {} }] };
    const { code, stdout } = await ambit(["plan", "--json", "-"], { cwd, input });
    expect(code).toBe(4);
    expect(JSON.parse(stdout).failure.issues).toContainEqual({
      path: "customTools[0].options",
      message: "a lookup has no options: remove them",
    });
  });
});
