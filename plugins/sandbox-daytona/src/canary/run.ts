import { randomUUID } from "node:crypto";
import {
  closingAfter,
  findingsOf,
  NotProven,
  probeSpec,
  quietLog,
  runInTurn,
  type TrialOutcome,
  unlimitedBoundary,
  unproven,
} from "@ambit/backend-kit";
import { openRemoteSandbox } from "@ambit/bridge";
import type { Boundary, Capability, Finding, HiddenCredential, Scope } from "@ambit/core/plugin";
import type { Account } from "../account.js";
import type { Claim } from "../claims.js";
import { allAttempts } from "../inside/attempts.js";
import { bridgeSettings } from "../inside/daemon.js";
import { tryFrom } from "../inside/try-from.js";
import { isRestriction, type StartedMachine, startMachine } from "../open/start-machine.js";
import { fixOf, ServiceFailure } from "../platform/failure.js";
import { pauseFor } from "../platform/retries.js";
import { removeSecrets, storeSecrets } from "../secrets/organisation-secrets.js";
import type { CanaryBench, CanaryDecoys, CanaryTrial } from "./bench.js";
import { daemonTrial } from "./daemon.js";
import { inboundTrial } from "./inbound.js";
import { isolationTrials } from "./isolation.js";
import { networkTrials } from "./network.js";
import { resourceTrials, sizes } from "./resources.js";
import { secretTrials } from "./secrets.js";

export interface CanaryReport {
  readonly findings: readonly Finding[];
  /** Whether it could test everything; if not, the canary is repeated soon. */
  readonly complete: boolean;
}

/**
 * Runs two short-lived sandboxes, one without limits and one with them, and a third to connect to. Returns a finding for every
 * claim.
 */
export async function runCanary(
  account: Account,
  signal: AbortSignal,
  claims: readonly Capability[],
): Promise<CanaryReport> {
  const opened: StartedMachine[] = [];
  const closeAll = () => Promise.all(opened.map(({ platform }) => platform.destroy()));
  try {
    const outcomes = await closingAfter(signal, closeAll, async () => {
      const bench = await makeBench(account, opened, signal);
      const isAsked = ({ shows }: CanaryTrial) => shows.some((claim) => claims.includes(claim));
      const inTurn = (trials: readonly CanaryTrial[]) => runInTurn(trials.filter(isAsked), bench, signal);
      const outcomes = await Promise.all([
        inTurn(networkTrials),
        inTurn([...isolationTrials, ...secretTrials]),
        inTurn([daemonTrial]),
        inTurn([inboundTrial]),
      ]);
      outcomes.push(await inTurn(resourceTrials));
      signal.throwIfAborted();
      await closeAll();
      return [...outcomes.flat(), await whatRemains(account, bench.limited)];
    });
    return { findings: findingsOf(claims, outcomes, fixOf), complete: true };
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    return { findings: claims.map((claim) => unproven(claim, error, fixOf)), complete: false };
  }
}

async function makeBench(
  account: Account,
  opened: StartedMachine[],
  signal: AbortSignal,
): Promise<CanaryBench> {
  const { config } = account;
  const decoys: CanaryDecoys = { variable: randomUUID(), secret: randomUUID(), process: randomUUID() };
  const start = async (what: string, boundary: Boundary, additions: object = {}) => {
    const session = `canary-${what}-${randomUUID()}`;
    const started = await startMachine(account, { session, boundary, log: quietLog, signal, ...additions });
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
    ...unlimitedBoundary,
    network: { mode: "off", rules: [] },
    resources: config.image === undefined ? {} : sizes.limited,
  };
  const startLimited = () =>
    start("limited", limitedBoundary, additions).catch((error: unknown) => {
      if (!isRestriction(error)) throw error;
      unrestricted = error;
      return start("limited", { ...limitedBoundary, network: unlimitedBoundary.network }, additions);
    });
  const openBoundary = { ...unlimitedBoundary, resources: config.image === undefined ? {} : sizes.open };
  // Its network doesn't matter, and an organisation may be unable to limit it.
  const anotherBoundary = { ...limitedBoundary, network: unlimitedBoundary.network };
  // Waits for both, so that one that starts after the other has failed is closed too.
  const [opening, limiting] = await Promise.allSettled([start("open", openBoundary), startLimited()]);
  if (opening.status === "rejected") throw opening.reason;
  if (limiting.status === "rejected") throw limiting.reason;
  const [open, limited] = [opening.value, limiting.value];
  const scope: Scope = { signal, defer: () => undefined };
  const bridged = (
    { session: id, started: { platform } }: Awaited<ReturnType<typeof start>>,
    inbound: () => readonly number[],
  ) => {
    const spec = probeSpec(limitedBoundary, { id });
    const { bridge } = config;
    return openRemoteSandbox({ platform, spec, bridge, evidence: {}, ...bridgeSettings, inbound }, scope);
  };
  let entered: readonly number[] = [];
  const [sandbox, control] = await Promise.all([
    bridged(limited, () => entered),
    tryFrom(open.started.machine, allAttempts(config.canary), config),
  ]);
  return {
    account,
    open: open.started,
    control,
    limited: limited.started,
    sandbox,
    letIn: (ports) => {
      entered = ports;
    },
    openAnother: async (ports) => bridged(await start("entered", anotherBoundary), () => ports),
    unrestricted,
    withoutSecret,
    decoys,
    signal,
  };
}

/** Stores them once and removes them: a key may be allowed to open sandboxes but not to store secrets. */
async function whyNoSecrets(account: Account, secrets: readonly HiddenCredential[]): Promise<unknown> {
  const { namePrefix, requestTimeoutMs } = account.config;
  const session = `canary-secret-${randomUUID()}`;
  try {
    const owner = await account.reaper.begin(session);
    const settings = { namePrefix, limitMs: requestTimeoutMs };
    const service = await account.service();
    const { ids } = await storeSecrets(service, secrets, owner, settings);
    await removeSecrets(service, ids, settings.limitMs);
    return undefined;
  } catch (error) {
    return error;
  } finally {
    account.reaper.end(session);
  }
}

const goneWithinMs = 10_000;

/** Nothing outlives a deleted sandbox, so the platform is asked whether it still exists. Empty if it doesn't. */
async function whatRemains(account: Account, { machine }: StartedMachine): Promise<TrialOutcome<Claim>> {
  const service = await account.service();
  const end = performance.now() + goneWithinMs;
  for (;;) {
    // It may also be gone between the two requests.
    const state = await service
      .get(machine.name)
      .then(async (still) => (await still.refresh()).state)
      .catch((error: unknown) => {
        if (error instanceof ServiceFailure && error.kind === "missing") return "destroyed";
        throw error;
      });
    if (state === "destroyed" || state === "destroying") return new Map();
    if (performance.now() > end) {
      const error = new NotProven(`a deleted sandbox is still ${state}`, "see Daytona's dashboard");
      return new Map([["process.contained", error]]);
    }
    await pauseFor(250);
  }
}
