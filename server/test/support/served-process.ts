import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import type { ConfigurationInput } from "../../src/configuration/schema.js";

export interface ServedProcess {
  readonly url: string;
  readonly healthUrl: string;
  readonly child: ChildProcess;
}

/** The built server with a health listener, as a process of its own that may open so many files. */
export async function serveProcess(options: {
  readonly token: string;
  readonly configuration?: ConfigurationInput;
  readonly openFiles?: number;
}): Promise<ServedProcess> {
  const { token, configuration = {}, openFiles = 1_024 } = options;
  const folder = await mkdtemp(join(tmpdir(), "ambit-served-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, "ambit.config.json");
  await writeFile(file, JSON.stringify({ plugins: ["@ambit/executor-client"], ...configuration }));
  const program = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
  const command = `ulimit -n ${openFiles}; exec "$0" "$@"`;
  const args = [process.execPath, program, "serve", "--port", "0", "--config", file];
  const child = spawn("/bin/sh", ["-c", command, ...args], {
    env: { PATH: process.env.PATH ?? "", HOME: folder, AMBIT_TOKEN: token, AMBIT_HEALTH_PORT: "0" },
    stdio: ["ignore", "ignore", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  for await (const line of createInterface({ input: child.stderr })) {
    const [, url, healthUrl] = /"url":"([^"]+)","healthUrl":"([^"]+)"/.exec(line) ?? [];
    if (url !== undefined && healthUrl !== undefined) return { url, healthUrl, child };
  }
  throw new Error("the server didn't start");
}
