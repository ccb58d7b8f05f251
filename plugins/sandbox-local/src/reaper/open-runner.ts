import { codeOf, messageOf, SandboxFailed } from "@ambit/core/plugin";
import { claimRunnerFolder, type RunnerFolder } from "../folders/runner-folder.js";
import type { Trash } from "../folders/trash.js";
import { reap } from "./reap.js";
import { watchOver } from "./watch.js";

const maxTimerMs = 2_147_483_647;

/**
 * Cleans up what dead runners left in the data folder, and creates this runner's folder in it.
 * Its leftovers are removed as soon as it is killed.
 *
 * @param takeoverMs how long files of a dead runner's named sessions wait for one that goes on with them.
 * @throws SandboxFailed when the folder can't be used.
 */
export async function openRunner(dataFolder: string, takeoverMs: number): Promise<RunnerFolder> {
  try {
    const runner = await claimRunnerFolder(dataFolder);
    await watchOver(runner.key, runner.path);
    // Before this start adds to it.
    await runner.trash.retry();
    await reapUntilEmpty(dataFolder, runner.trash, takeoverMs);
    return runner;
  } catch (error) {
    if (error instanceof SandboxFailed) throw error;
    const why = codeOf(error) ?? messageOf(error);
    throw new SandboxFailed(`the data folder ${dataFolder} can't be used (${why})`, { cause: error });
  }
}

/** Now, and again when what still waits has waited long enough. */
async function reapUntilEmpty(dataFolder: string, trash: Trash, takeoverMs: number): Promise<void> {
  const { waiting } = await reap(dataFolder, trash, takeoverMs);
  if (waiting === 0) return;
  const again = () =>
    void reapUntilEmpty(dataFolder, trash, takeoverMs).catch((error: unknown) =>
      trash.note(dataFolder, error),
    );
  setTimeout(again, Math.min(takeoverMs, maxTimerMs)).unref();
}
