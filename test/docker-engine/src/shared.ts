import { z } from "zod";
import { type DockerEngine, engineSchema, type Runtime, runtimes } from "./engine.js";

export type { DockerEngine } from "./engine.js";

/** How the run's engine reaches the workers: the test run's own process sets it, before they start. */
const variable = "AMBIT_DOCKER_ENGINE";
/** Where it names runtimes, as in CI, one that doesn't work here is an error and no skip. */
const demand = "AMBIT_MUST_RUN_DOCKER";

const sharedSchema = z.union([engineSchema, z.strictObject({ reason: z.string() })]);
type Shared = z.infer<typeof sharedSchema>;

export function isShared(): boolean {
  return process.env[variable] !== undefined;
}

export function share(shared: Shared): void {
  process.env[variable] = JSON.stringify(shared);
}

export function unshare(): void {
  delete process.env[variable];
}

function shared(): Shared {
  const value = process.env[variable];
  if (value === undefined)
    throw new Error(`no engine was started: add @ambit/docker-engine to the package's devDependencies`);
  return sharedSchema.parse(JSON.parse(value));
}

/** The test run's engine. Throws where there is none: ask `unavailableReason` first. */
export function dockerEngine(): DockerEngine {
  const found = shared();
  if ("reason" in found) throw new Error(found.reason);
  return found;
}

/**
 * Why this machine can't run containers with a runtime, for a test's skip (`host: ${reason}`); undefined where it can.
 *
 * @throws Error in place of a reason, where `AMBIT_MUST_RUN_DOCKER` lists the runtime.
 */
export function unavailableReason(runtime: Runtime = "runc"): string | undefined {
  const found = shared();
  const reason = "reason" in found ? found.reason : (found.failures[runtime] ?? undefined);
  const isDemanded = (process.env[demand] ?? "").split(",").includes(runtime);
  if (reason !== undefined && isDemanded) throw new Error(`${demand}: ${runtime}: ${reason}`);
  return reason;
}

/** The runtimes that `AMBIT_MUST_RUN_DOCKER` lists. @throws Error for a name that isn't a runtime's. */
export function demandedRuntimes(listed = process.env[demand] ?? ""): Runtime[] {
  const names = listed.split(",").filter((name) => name !== "");
  return names.map((name) => z.enum(runtimes).parse(name));
}
