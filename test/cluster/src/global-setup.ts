import { rename, writeFile } from "node:fs/promises";
import { whyNotStarted } from "./programs.js";
import { isDemanded, isShared, share, stateFile, unshare } from "./shared.js";
import { type StartedCluster, startCluster } from "./start/start.js";

/**
 * One cluster for a test run, ended after its last test. It starts while the first tests run: those that need it wait. Without
 * one, each test that needs it says why.
 *
 * @throws Error where `AMBIT_MUST_RUN_CLUSTER` is set and this machine can't run one.
 */
export async function setup(): Promise<(() => Promise<void>) | undefined> {
  if (isShared()) return undefined;
  const given = process.env.AMBIT_TEST_KUBECONFIG;
  if (given !== undefined) {
    share({ kubeconfig: given });
    return async () => unshare();
  }
  const lacking = whyNotStarted();
  if (lacking !== undefined && isDemanded()) throw new Error(lacking);
  if (lacking !== undefined) {
    share({ reason: lacking });
    return async () => unshare();
  }
  const cluster = await startCluster();
  share({ own: cluster.place });
  const reported = report(cluster);
  return async () => {
    unshare();
    await cluster.close();
    await reported;
  };
}

/** Appears whole, since workers read it as soon as it exists. */
async function report({ place, ready }: StartedCluster): Promise<void> {
  const state = await ready.then(
    () => ({}),
    (error) => ({ reason: error instanceof Error ? error.message : String(error) }),
  );
  const file = stateFile(place.folder);
  try {
    await writeFile(`${file}.part`, JSON.stringify(state));
    await rename(`${file}.part`, file);
  } catch {
    // The cluster was closed meanwhile.
  }
}
