import { once } from "node:events";
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { describe, expect, it, onTestFinished } from "vitest";

const server = fileURLToPath(new URL("../..", import.meta.url));

/** Says that it is another version, as an older one would. */
const asOld = `data:text/javascript,Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.1.0" } });`;

/** In place of the bundle: what it is started with, and then what the test needs. */
const bundle = `const [, , what] = process.argv;
if (what === "fail") process.exitCode = 7;
if (what === "serve") process.on("SIGTERM", () => process.exit(8)), setInterval(() => {}, 1_000);
console.log(JSON.stringify({ version: process.versions.node, path: process.env.PATH.split(":")[0] }));
`;

/** A clone with these programs in its cache, or an installed package if there are none at all. */
async function clone(...nodes: readonly string[]) {
  const folder = await mkdtemp(join(tmpdir(), "ambit-clone-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await cp(join(server, "bin"), join(folder, "server/bin"), { recursive: true });
  await cp(join(server, "package.json"), join(folder, "server/package.json"));
  await mkdir(join(folder, "server/dist/bundle"), { recursive: true });
  await writeFile(join(folder, "server/dist/bundle/ambit.js"), bundle);
  await mkdir(join(folder, "scripts"));
  await writeFile(join(folder, "scripts/setup.mjs"), "");
  for (const name of nodes) {
    await mkdir(join(folder, ".cache", name, "bin"), { recursive: true });
    await symlink(process.execPath, join(folder, ".cache", name, "bin/node"));
  }
  const start = (...args: readonly string[]) =>
    execa(process.execPath, ["--import", asOld, join(folder, "server/bin/ambit.mjs"), ...args], {
      reject: false,
    });
  return { folder, start };
}

describe("ambit on a Node that is too old", () => {
  it("runs with the newest one that setup brought, and first on the PATH", async () => {
    const { folder, start } = await clone("node-20.9.0", "node-24.3.0", "node-24.21.0", "node-25.0.0.4711");
    await mkdir(join(folder, ".cache/node-26.0.0/bin"), { recursive: true });
    const { stdout, exitCode } = await start("--version");
    expect(JSON.parse(stdout)).toMatchObject({
      version: process.versions.node,
      path: join(folder, ".cache/node-24.21.0/bin"),
    });
    expect(exitCode).toBe(0);
  });

  it("ends as the command does, and passes a signal on", async () => {
    const { start } = await clone("node-24.21.0");
    expect((await start("fail")).exitCode).toBe(7);
    const serving = start("serve");
    await once(serving.stdout, "data");
    serving.kill("SIGTERM");
    expect((await serving).exitCode).toBe(8);
  });

  it("says how to get one where there is none", async () => {
    const { folder, start } = await clone();
    const inClone = await start("--version");
    expect(inClone.exitCode).toBe(2);
    expect(inClone.stderr).toContain("this is 20.1.0: `npm run setup` in the repository brings one");
    await rm(join(folder, "scripts"), { recursive: true });
    expect((await start("--version")).stderr).toContain("see https://nodejs.org");
  });
});
