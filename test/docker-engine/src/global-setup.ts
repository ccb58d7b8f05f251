import { demandedRuntimes, isShared, share, unshare } from "./shared.js";
import { startDockerEngine } from "./start.js";

/**
 * One engine for a test run: started before its first test, ended after its last. A machine that can't run one says
 * why in each test that needs it.
 *
 * @throws Error where `AMBIT_MUST_RUN_DOCKER` names what this machine can't run.
 */
export async function setup(): Promise<(() => Promise<void>) | undefined> {
  if (isShared()) return undefined;
  const demanded = demandedRuntimes();
  try {
    const { close, ...engine } = await startDockerEngine();
    share(engine);
    return async () => {
      unshare();
      await close();
    };
  } catch (error) {
    if (demanded.length > 0) throw error;
    share({ reason: error instanceof Error ? error.message : String(error) });
    return async () => unshare();
  }
}
