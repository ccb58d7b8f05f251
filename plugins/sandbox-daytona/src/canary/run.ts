import { randomUUID } from "node:crypto";
import { openRemoteSandbox } from "@ambit/bridge";
import type { Boundary, Finding, HiddenCredential, Scope } from "@ambit/core/plugin";
import type { Account } from "../account.js";
import { type Claim, claimsOf } from "../claims.js";
import { allAttempts } from "../inside/attempts.js";
import { daemon, fallsWithDaemon } from "../inside/daemon.js";
import { tryFrom } from "../inside/try-from.js";
import { type StartedMachine, startMachine } from "../open/start-machine.js";
import { ServiceFailure } from "../platform/failure.js";
import { pauseFor } from "../platform/patience.js";
import { storeSecrets } from "../secrets/organisation-secrets.js";
import { type Bench, type Decoys, quiet, type Trial, unlimited } from "./bench.js";
import { isRestriction } from "./contradiction.js";
import { tryDaemon } from "./daemon.js";
import { NotProven, proven, unproven } from "./findings.js";
import { isolationTrials } from "./isolation.js";
import { networkTrials } from "./network.js";
import { resourceTrials, sizes } from "./resources.js";
import { secretTrials } from "./secrets.js";

export interface CanaryReport {
  readonly findings: readonly Finding[];
  /** Whether it saw all that it was sent for: else it is worth sending another one soon. */
  readonly complete: boolean;
}

/** Sends two short-lived sandboxes, one without limits and one with, and says of every claim what was seen. */
export async function runCanary(account: Account, signal: AbortSignal): Promise<CanaryReport> {
  const claims = claimsOf(account.config);
  const found = new Map<Claim, Finding>();
  const opened: StartedMachine[] = [];
  // Whatever a trial waits for ends with its sandboxes; what goes wrong then shows at the other call below.
  const stop = () => void closeAll(opened).catch(() => undefined);
  signal.addEventListener("abort", stop, { once: true });
  try {
    const bench = await makeBench(account, opened, signal);
    const [daemonSeen] = await Promise.allSettled([
      tryDaemon(bench),
      runTrials(networkTrials, bench, found),
      runTrials([...isolationTrials, ...secretTrials], bench, found),
    ]);
    noteDaemon(daemonSeen, found);
    await runTrials(
      resourceTrials.filter(({ shows }) => shows.every((claim) => claims.includes(claim))),
      bench,
      found,
    );
    signal.throwIfAborted();
    await closeAll(opened);
    await checkGone(account, bench.limited, found);
    const findings = claims.map(
      (claim) => found.get(claim) ?? unproven(claim, new Error("nothing was seen of it")),
    );
    return { findings, complete: true };
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    return { findings: claims.map((claim) => unproven(claim, error)), complete: false };
  } finally {
    signal.removeEventListener("abort", stop);
    await closeAll(opened);
  }
}

async function makeBench(account: Account, opened: StartedMachine[], signal: AbortSignal): Promise<Bench> {
  const { config } = account;
  const decoys: Decoys = { variable: randomUUID(), secret: randomUUID(), process: randomUUID() };
  const start = async (what: string, boundary: Boundary, additions: object = {}) => {
    const session = `canary-${what}-${randomUUID()}`;
    const started = await startMachine(account, { session, boundary, log: quiet, signal, ...additions });
    opened.push(started);
    return { session, started };
  };
  const secrets = [{ name: "canary", value: decoys.secret, hosts: ["secret.ambit.example"] }];
  const withoutSecret = await whyNoSecrets(account, secrets);
  const additions = {
    env: { AMBIT_CANARY: decoys.variable },
    secrets: withoutSecret === undefined ? secrets : [],
  };
  let unrestricted: unknown;
  const limitedBoundary: Boundary = {
    ...unlimited,
    network: { mode: "off", rules: [] },
    resources: config.image === undefined ? {} : sizes.limited,
  };
  const startLimited = () =>
    start("limited", limitedBoundary, additions).catch((error: unknown) => {
      if (!isRestriction(error)) throw error;
      unrestricted = error;
      return start("limited", { ...limitedBoundary, network: unlimited.network }, additions);
    });
  const openBoundary = { ...unlimited, resources: config.image === undefined ? {} : sizes.open };
  // Both are waited for: one that comes after the other has failed is closed too.
  const [opening, limiting] = await Promise.allSettled([start("open", openBoundary), startLimited()]);
  if (opening.status === "rejected") throw opening.reason;
  if (limiting.status === "rejected") throw limiting.reason;
  const [open, limited] = [opening.value, limiting.value];
  const scope: Scope = { signal, defer: () => undefined };
  const spec = {
    id: limited.session,
    boundary: limitedBoundary,
    required: [],
    requiredPaths: [],
    onDecision: () => undefined,
    log: quiet,
  };
  const { platform } = limited.started;
  const [sandbox, control] = await Promise.all([
    openRemoteSandbox(
      { platform, spec, bridge: config.bridge, evidence: {}, ownSystem: true, supervisor: daemon },
      scope,
    ),
    tryFrom(open.started.machine, allAttempts(config.canary), config),
  ]);
  return {
    account,
    open: open.started,
    control,
    limited: limited.started,
    sandbox,
    unrestricted,
    withoutSecret,
    decoys,
    signal,
  };
}

/** Stores them once and removes them: a key may open sandboxes and keep no secrets. */
async function whyNoSecrets(account: Account, secrets: readonly HiddenCredential[]): Promise<unknown> {
  const { namePrefix, requestTimeoutMs } = account.config;
  const session = `canary-secret-${randomUUID()}`;
  try {
    const owner = await account.begin(session);
    const settings = { namePrefix, limitMs: requestTimeoutMs };
    await (await storeSecrets(await account.service(), secrets, owner, settings)).remove();
    return undefined;
  } catch (error) {
    return error;
  } finally {
    account.end(session);
  }
}

async function runTrials(trials: readonly Trial[], bench: Bench, found: Map<Claim, Finding>): Promise<void> {
  for (const { shows, run } of trials) {
    if (bench.signal.aborted) return;
    try {
      const seen = await run(bench);
      for (const claim of shows) {
        const how = seen[claim];
        if (how !== undefined) found.set(claim, proven(claim, how));
      }
    } catch (error) {
      for (const claim of shows) found.set(claim, unproven(claim, error));
    }
  }
}

/** Whatever else was seen of these claims, they hold only while nothing inside gives the daemon orders. */
function noteDaemon(seen: PromiseSettledResult<string>, found: Map<Claim, Finding>): void {
  for (const claim of fallsWithDaemon) {
    const finding = found.get(claim);
    if (finding?.proven !== true) continue;
    found.set(
      claim,
      seen.status === "rejected"
        ? unproven(claim, seen.reason)
        : proven(claim, `${finding.how}; ${seen.value}`),
    );
  }
}

async function closeAll(opened: readonly StartedMachine[]): Promise<void> {
  await Promise.all(opened.map(({ platform }) => platform.destroy()));
}

const goneWithinMs = 10_000;

/** Nothing outlives a sandbox that isn't there: the platform is asked whether it is. */
async function checkGone(
  account: Account,
  { machine }: StartedMachine,
  found: Map<Claim, Finding>,
): Promise<void> {
  const service = await account.service();
  const end = performance.now() + goneWithinMs;
  for (;;) {
    const state = await service.get(machine.name).then(
      async (still) => (await still.refresh()).state,
      (error: unknown) => {
        if (error instanceof ServiceFailure && error.kind === "missing") return "destroyed";
        throw error;
      },
    );
    if (state === "destroyed" || state === "destroying") return;
    if (performance.now() > end) {
      const error = new NotProven(`a deleted sandbox is still ${state}`, "see Daytona's dashboard");
      found.set("process.contained", unproven("process.contained", error));
      return;
    }
    await pauseFor(250);
  }
}
