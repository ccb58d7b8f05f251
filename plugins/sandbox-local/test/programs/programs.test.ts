// needs: jail
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { NetworkBoundary } from "@ambit/core/plugin";
import { afterAll, describe, expect, onTestFinished, type TestContext, test } from "vitest";
import { removeTree } from "../../src/folders/remove-tree.js";
import { configSchema, LocalSandbox } from "../../src/index.js";
import { closed, run, scope, shell, specOf } from "../support/specs.js";
import { languages } from "./languages.js";
import { startListedHost } from "./listed-host.js";
import { network } from "./network.js";
import type { Program } from "./program.js";
import { refused } from "./refused.js";
import { programsPage } from "./table.js";
import { tools } from "./tools.js";

const plainPaths = ["/usr/local/bin", "/usr/bin", "/bin"];

/** Rust as rustup installs it, in a home: a deployer lists it in `visible`. */
const rust = sysroot();
/** A development dependency, since no distribution has it. */
const pnpm = dirname(createRequire(import.meta.url).resolve("pnpm"));
const searched = [...plainPaths, join(pnpm, "bin"), ...(rust === undefined ? [] : [join(rust, "bin")])];
const timeout = 90_000;

function sysroot(): string | undefined {
  try {
    return execFileSync("rustc", ["--print", "sysroot"], { encoding: "utf8", stdio: "pipe" }).trim();
  } catch {
    // This host has no Rust; the program that needs it is skipped with that reason.
    return undefined;
  }
}

function skipWithout({ needs, has }: Program, context: TestContext): void {
  const missing = needs.find((name) => !searched.some((folder) => existsSync(join(folder, name))));
  if (missing !== undefined) context.skip(`host: no ${missing} in ${plainPaths.join(", ")}`);
  if (has === undefined) return;
  const tried = spawnSync("/bin/sh", ["-c", has], { env: { PATH: searched.join(":") }, stdio: "ignore" });
  if (tried.status !== 0) context.skip(`host: ${has} fails`);
}

const dataFolder = mkdtempSync(join(tmpdir(), "ambit-local-"));
// A session's own user has to reach it.
chmodSync(dataFolder, 0o711);
afterAll(() => removeTree(dataFolder));
const readOnlyMounts = [pnpm, ...(rust === undefined || rust.startsWith("/usr/") ? [] : [rust])];
const backend = new LocalSandbox(configSchema.parse({ dataFolder, readOnlyMounts }), async () => [
  "127.0.0.1",
]);

async function work(program: Program, boundary: NetworkBoundary, env: Record<string, string> = {}) {
  const sandbox = await backend.open(specOf({ boundary: { ...closed, network: boundary } }), scope);
  onTestFinished(() => sandbox.close());
  const { stdout, stderr } = await run(sandbox, shell(program.script), {
    env: { PATH: searched.join(":"), ...env },
  });
  return { stdout, stderr };
}

const off: NetworkBoundary = { mode: "off", rules: [] };

describe("ordinary work runs inside, without a network", () => {
  for (const program of [...languages, ...tools]) {
    test(`${program.name}: ${program.does}`, { timeout }, async (context) => {
      skipWithout(program, context);
      const { stdout, stderr } = await work(program, off);
      expect(stdout, stderr).toMatch(program.prints);
    });
  }
});

describe("ordinary work runs inside, with an allowlist", () => {
  for (const program of network) {
    test(`${program.name}: ${program.does}`, { timeout }, async (context) => {
      skipWithout(program, context);
      const port = await startListedHost();
      const rules = [
        { kind: "host", name: "files.test", subdomains: false, port },
        { kind: "range", cidr: "127.0.0.1/32", family: 4, port },
      ] as const;
      const urls = { HOST: `files.test:${port}`, GATEWAY: `127.0.0.1:${port}` };
      const { stdout, stderr } = await work(program, { mode: "allowlist", rules }, urls);
      expect(stdout, stderr).toMatch(program.prints);
    });
  }
});

describe("what is refused by design fails with a clear error", () => {
  for (const program of refused) {
    test(`${program.name}: ${program.does}`, { timeout }, async (context) => {
      skipWithout(program, context);
      const { stdout, stderr } = await work(program, off);
      expect(stdout, stderr).toMatch(program.prints);
    });
  }
});

test("the documentation lists these programs", async () => {
  await expect(programsPage()).toMatchFileSnapshot("../../../../docs/programs.md");
});
