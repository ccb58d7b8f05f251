import { spawn } from "node:child_process";
import type { ExecuteResponse } from "@daytona/toolbox-api-client";
import { ApiError, badRequest } from "../../http/api-error.js";
import { sendJson } from "../../http/json.js";
import type { Exchange } from "../../http/routes.js";
import { Body } from "../body.js";
import { imageShell } from "./shell.js";
import { signalGroup } from "./signals.js";

/** Runs a command to its end, with both outputs merged. After the timeout its process group is killed. */
export async function execute({ request, response }: Exchange): Promise<void> {
  const body = await Body.of(request);
  const command = body.text("command") ?? "";
  if (command.trim() === "") throw badRequest("command cannot be empty or whitespace-only");
  const seconds = body.number("timeout") ?? 0;
  const cwd = body.text("cwd");

  const child = spawn(imageShell(), [], {
    env: { ...process.env, ...body.texts("envs") },
    ...(cwd === undefined ? {} : { cwd }),
    detached: true,
    stdio: ["pipe", "pipe", "pipe"],
  });
  const output: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => output.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => output.push(chunk));
  // A shell that exits early doesn't read all of it.
  child.stdin.on("error", () => {});
  // One pipe for both streams keeps their order. On the command's own line, so that line numbers stay right.
  child.stdin.end(`exec 2>&1; ${command}`);

  let timer: NodeJS.Timeout | undefined;
  try {
    const exitCode = await new Promise<number>((resolve, reject) => {
      if (seconds > 0) {
        timer = setTimeout(() => {
          signalGroup(child.pid, "SIGKILL");
          reject(new ApiError(408, "command execution timeout"));
        }, seconds * 1000);
      }
      child.once("error", (error) => {
        output.push(Buffer.from(error.message));
        resolve(-1);
      });
      child.once("close", (code) => resolve(code ?? -1));
    });
    const result = Buffer.concat(output).toString("utf8");
    sendJson(response, 200, { exitCode, result } satisfies ExecuteResponse);
  } finally {
    clearTimeout(timer);
  }
}
