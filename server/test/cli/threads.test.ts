import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";

const program = fileURLToPath(new URL("../../bin/ambit.mjs", import.meta.url));

it.each([
  ["16 threads look names up and read files", {}, "16"],
  ["as many as the deployer says", { UV_THREADPOOL_SIZE: "5" }, "5"],
])("%s", (_what, env, wanted) => {
  const folder = mkdtempSync(join(tmpdir(), "ambit-threads-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const preload = join(folder, "preload.cjs");
  writeFileSync(
    preload,
    'process.on("exit", () => console.log("threads:" + process.env.UV_THREADPOOL_SIZE))',
  );
  const { stdout } = spawnSync(process.execPath, ["--require", preload, program, "--version"], {
    env: { PATH: process.env.PATH, ...env },
    encoding: "utf8",
  });
  expect(stdout).toContain(`threads:${wanted}`);
});
