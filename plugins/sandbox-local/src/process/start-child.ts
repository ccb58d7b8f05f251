import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { type Command, SandboxFailed } from "@ambit/core/plugin";

/** @throws SandboxFailed for what no program can be started with. */
export function checkCommand({ argv, cwd }: Command): void {
  if (argv.some((argument) => argument.includes("\0"))) {
    throw new SandboxFailed("An argument of a program mustn't contain NUL");
  }
  if (cwd !== undefined && !cwd.startsWith("/")) {
    throw new SandboxFailed(`A program's folder must be an absolute path, but is ${JSON.stringify(cwd)}`);
  }
}

/** @throws SandboxFailed naming the program, however the system refuses it: some refusals are thrown, others told. */
export async function startChild(
  program: string,
  args: readonly string[],
  options: SpawnOptions,
): Promise<ChildProcess> {
  try {
    const child = spawn(program, args, options);
    await once(child, "spawn");
    return child;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new SandboxFailed(`${program} can't be started: ${why}`, { cause: error });
  }
}
