import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { basename } from "node:path";
import { type Command, codeOf, SandboxFailed } from "@ambit/core/plugin";

/** @throws SandboxFailed for arguments or a folder that no program can be started with. */
export function checkCommand({ argv, cwd }: Command): void {
  if (argv.some((argument) => argument.includes("\0"))) {
    throw ofCommand("A program's argument must not contain NUL");
  }
  if (cwd !== undefined && !cwd.startsWith("/")) {
    throw ofCommand(`A program's folder must be an absolute path, but is ${JSON.stringify(cwd)}`);
  }
}

/**
 * @param concerns the capabilities that a failed start disproves: none, if the command names the program.
 * @throws SandboxFailed naming the program, whether the system throws the error or reports it as an event.
 */
export async function startChild(
  program: string,
  args: readonly string[],
  options: SpawnOptions,
  concerns: "host" | "session" = "host",
): Promise<ChildProcess> {
  try {
    const child = spawn(program, args, options);
    await once(child, "spawn");
    return child;
  } catch (error) {
    const code = codeOf(error);
    const why = code === "E2BIG" ? "its arguments and variables are too long (E2BIG)" : (code ?? "unknown");
    const message = `${basename(program)} can't be started: ${why}`;
    throw code === "E2BIG"
      ? ofCommand(message, error)
      : new SandboxFailed(message, { cause: error, concerns });
  }
}

function ofCommand(message: string, cause?: unknown): SandboxFailed {
  return new SandboxFailed(message, { cause, concerns: "session" });
}
