import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { sandboxImageName } from "@ambit/sandbox-image";
import { type Shared, sharedSchema } from "./interface.js";
import { OwnCluster } from "./own-cluster.js";

/** How the run's cluster reaches the workers: the test run's own process sets it, before they start. */
const variable = "AMBIT_TEST_CLUSTER";
/** Where it is set, as in CI, a cluster that doesn't start is an error and no skip. */
const demand = "AMBIT_MUST_RUN_CLUSTER";

export const isDemanded = () => Boolean(process.env[demand]);
export const isShared = () => process.env[variable] !== undefined;

export function share(shared: Shared): void {
  process.env[variable] = JSON.stringify(shared);
}

export function unshare(): void {
  delete process.env[variable];
}

/** In the cluster's folder when it has started: `{}`, or `{"reason": …}` if it hasn't. */
export const stateFile = (folder: string) => join(folder, "state.json");

/** What a test gets. */
export interface TestCluster {
  /** Path of a kubeconfig with all rights. */
  readonly kubeconfig: string;
  /** An image that the cluster has or can pull, with Node.js, Python, /bin/sh and tar. */
  readonly image: string;
  /** What can be done only to a cluster that this test run started; undefined with `AMBIT_TEST_KUBECONFIG`. */
  readonly own: OwnCluster | undefined;
}

function shared(): Shared {
  const value = process.env[variable];
  if (value === undefined)
    throw new Error("no cluster was started: add @ambit/test-cluster to the package's devDependencies");
  return sharedSchema.parse(JSON.parse(value));
}

/**
 * Why there is no cluster, for a test's skip (`host: ${reason}`); undefined when there is one. Waits until it has started.
 *
 * @throws Error in place of a reason, where `AMBIT_MUST_RUN_CLUSTER` is set.
 */
export async function unavailableReason(): Promise<string | undefined> {
  const found = shared();
  const reason =
    "own" in found ? await started(found.own.folder) : "reason" in found ? found.reason : undefined;
  if (reason !== undefined && isDemanded()) throw new Error(`${demand}: ${reason}`);
  return reason;
}

/** The same for what can be done only to a cluster that this test run started. */
export async function ownUnavailableReason(): Promise<string | undefined> {
  const reason = await unavailableReason();
  if (reason !== undefined) return reason;
  return "own" in shared()
    ? undefined
    : "the cluster of AMBIT_TEST_KUBECONFIG isn't the tests' own: set AMBIT_CLUSTER";
}

/** Waits until it has started. @throws Error where there is none: ask `unavailableReason` first. */
export async function testCluster(): Promise<TestCluster> {
  const reason = await unavailableReason();
  if (reason !== undefined) throw new Error(reason);
  const found = shared();
  if ("own" in found) {
    const own = new OwnCluster(found.own);
    return { kubeconfig: own.kubeconfig, image: sandboxImageName(), own };
  }
  if ("reason" in found) throw new Error(found.reason);
  const image = process.env.AMBIT_TEST_CLUSTER_IMAGE ?? "nikolaik/python-nodejs:latest";
  return { kubeconfig: found.kubeconfig, image, own: undefined };
}

async function started(folder: string): Promise<string | undefined> {
  const file = stateFile(folder);
  while (!existsSync(file)) {
    if (!existsSync(folder)) return "the cluster has ended";
    await sleep(50);
  }
  const { reason }: { reason?: string } = JSON.parse(await readFile(file, "utf8"));
  return reason;
}
