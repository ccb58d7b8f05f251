import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { expect, it, onTestFailed, onTestFinished } from "vitest";
import { emptyFolder } from "../support/empty-folder.js";

const program = fileURLToPath(new URL("../../bin/ambit.mjs", import.meta.url));
const repository = fileURLToPath(new URL("../../..", import.meta.url));

it("a port that is taken ends the server with 2, and closes the store that it had opened", async () => {
  const folder = await emptyFolder();
  const other = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => void other.close());
  await once(other, "listening");
  const address = other.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const file = join(folder, "runs.sqlite");
  const configuration = { extends: "defaults", plugins: [{ use: "@ambit/store-sqlite", config: { file } }] };
  await writeFile(join(folder, "ambit.config.json"), JSON.stringify(configuration));
  const { exitCode, stderr } = await execa(process.execPath, [program, "serve", "--port", String(port)], {
    cwd: folder,
    env: { XDG_DATA_HOME: folder, AMBIT_LOG_LEVEL: "silent" },
    reject: false,
  });
  expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringContaining("EADDRINUSE") });
}, 60_000);

/** The server's process, whose line says that it listens. */
async function listening(child: ChildProcess): Promise<void> {
  if (child.stderr === null) throw new Error("no stderr");
  for await (const line of createInterface({ input: child.stderr })) if (line.includes('"listening"')) return;
  throw new Error("it ended before it listened");
}

it("`kill` of the npx that started a server ends the server too", async () => {
  const folder = await emptyFolder();
  const serving = ["ambit", "serve", "--port", "0"];
  const npx = spawn("npx", ["--no-install", ...serving], {
    cwd: repository,
    env: { ...process.env, XDG_DATA_HOME: folder, AMBIT_LOG_LEVEL: "info" },
    stdio: ["ignore", "ignore", "pipe"],
  });
  // Beside the wait for the first lines, so that a failure says what the server was doing.
  const written: Buffer[] = [];
  npx.stderr?.on("data", (bytes) => written.push(bytes));
  onTestFailed(() => console.error(`it wrote:\n${Buffer.concat(written)}`));
  await listening(npx);
  // The pipe ends with the last process that holds it: the server, which npx leaves behind.
  const closed = once(npx, "close");
  npx.kill("SIGTERM");
  await closed;
}, 60_000);
