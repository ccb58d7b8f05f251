import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import type { InterpreterContext } from "@daytona/toolbox-api-client";
import { badRequest } from "../../http/api-error.js";
import { sendJson } from "../../http/json.js";
import type { Exchange } from "../../http/routes.js";
import { Body } from "../body.js";

/** Python looks for what it imports beside the script first. */
const worker = "import json, sys\nfor line in sys.stdin: json.loads(line)\n";

/**
 * Opens a context of the code interpreter: a Python as the image's user, from a script in the folder for temporary
 * files, which is written only if it doesn't exist (`apps/daemon/pkg/toolbox/process/interpreter/repl_client.go`). The
 * context executes nothing.
 */
export async function openInterpreter({ request, response }: Exchange): Promise<void> {
  const body = await Body.of(request);
  const language = body.text("language") ?? "python";
  if (language !== "python") throw badRequest(`unsupported language: ${language}`);
  const cwd = body.text("cwd") ?? process.cwd();
  await startWorker(cwd);
  const context: InterpreterContext = {
    id: randomUUID(),
    cwd,
    language,
    active: true,
    createdAt: new Date().toISOString(),
  };
  sendJson(response, 200, context);
}

/** Also at the daemon's start, for the default context. */
export async function startWorker(cwd: string): Promise<void> {
  const script = `${process.env.TMPDIR ?? "/tmp"}/daytona_repl_worker.py`;
  await writeFile(script, worker, { mode: 0o700, flag: "wx" }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  const python = spawn("python3", [script], { cwd, stdio: ["pipe", "ignore", "inherit"] });
  await new Promise<void>((resolve, reject) => python.once("spawn", resolve).once("error", reject));
}
