import { codeOf, messageOf, SandboxFailed } from "@ambit/core/plugin";
import { claimRunnerFolder, type RunnerFolder } from "../folders/runner-folder.js";
import { reap } from "./reap.js";
import { watchOver } from "./watch.js";

/**
 * Cleans up what dead runners left in the data folder, and creates this runner's folder in it.
 * Its leftovers are removed as soon as it is killed.
 *
 * @throws SandboxFailed when the folder can't be used.
 */
export async function openRunner(dataFolder: string): Promise<RunnerFolder> {
  try {
    const runner = await claimRunnerFolder(dataFolder);
    await watchOver(runner.key, runner.path);
    // Before this start adds to it.
    await runner.trash.retry();
    await reap(dataFolder, runner.trash);
    return runner;
  } catch (error) {
    if (error instanceof SandboxFailed) throw error;
    const why = codeOf(error) ?? messageOf(error);
    throw new SandboxFailed(`the data folder ${dataFolder} can't be used (${why})`, { cause: error });
  }
}
