import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, it } from "vitest";

const ambit = join(import.meta.dirname, "../../bin/ambit.mjs");
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "ambit-agents-command-"));
  const installed = join(folder, "node_modules/@google/gemini-cli");
  await mkdir(installed, { recursive: true });
  const manifest = { name: "@google/gemini-cli", version: "9.9.9", bin: { gemini: "gemini.js" } };
  await writeFile(join(installed, "package.json"), JSON.stringify(manifest));
  await writeFile(join(installed, "gemini.js"), "");
  const packages = {
    "@agentclientprotocol/codex-acp": { version: "9.9.9", bin: { "codex-acp": "index.js" } },
    "@openai/codex": { version: "0.200.1" },
  };
  for (const [name, codex] of Object.entries(packages)) {
    const place = join(folder, "node_modules", name);
    await mkdir(place, { recursive: true });
    await writeFile(join(place, "package.json"), JSON.stringify({ name, ...codex }));
    await writeFile(join(place, "index.js"), "");
  }
});
afterEach(() => rm(folder, { recursive: true }));

it("`ambit agents` marks an agent whose version isn't the tested one", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [ambit, "agents"], { cwd: folder });
  expect(stdout).toMatch(/gemini +Gemini CLI +9\.9\.9 \(tested: \d+\.\d+\.\d+\)/);
  expect(stdout).toMatch(/demo +demo +included/);
  expect(stdout).toMatch(/codex +Codex +0\.200\.1 \(tested: \d+\.\d+\.\d+\), adapter 9\.9\.9 \(tested/);
}, 60_000);
