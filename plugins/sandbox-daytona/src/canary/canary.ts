/** What Daytona enforces: found out by sandboxes of its own, and kept until the account or its settings change. */

import { createHash, randomUUID } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
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
import {
  type Boundary,
  type Capability,
  type Finding,
  findingSchema,
  type HiddenCredential,
  type Scope,
} from "@ambit/core/plugin";
import { z } from "zod";
import type { Account } from "../account.js";
import { type Claim, claimsOf } from "../claims.js";
import { allAttempts, tryFrom } from "../inside/attempts.js";
import { bridgeSettings } from "../inside/daemon.js";
import { isRestriction, type StartedMachine, startMachine } from "../open/start-machine.js";
import { fixOf, ServiceFailure } from "../platform/failure.js";
import { pauseFor } from "../platform/retries.js";
import { removeSecrets, storeSecrets } from "../secrets/organisation-secrets.js";
import type { CanaryBench, CanaryDecoys, CanaryTrial } from "./bench.js";
import {
  daemonTrial,
  inboundTrial,
  isolationTrials,
  networkTrials,
  resourceTrials,
  secretTrials,
  sizes,
} from "./trials.js";

/** The findings of the last canary, or of a new one. First cleans up after dead runners. Those of some claims only aren't kept. */
export async function probeDaytona(
  account: Account,
  key: string,
  signal: AbortSignal,
  claims: readonly Capability[],
): Promise<readonly Finding[]> {
  const isWhole = claimsOf(account.config).every((claim) => claims.includes(claim));
  const store = new FindingStore(account);
  const stored = isWhole ? await store.find(key) : undefined;
  if (stored !== undefined) return stored;
  try {
    await account.reaper.keepReaping(quietLog);
  } catch (error) {
    // Without a list of leftovers there is no clean-up, and then no sandbox is opened either.
    return claims.map((claim) => unproven(claim, error, fixOf));
  }
  const { findings, complete } = await runCanary(account, signal, claims);
  if (isWhole) await store.keep(key, findings, complete);
  return findings;
}

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

const entrySchema = z.strictObject({ at: z.number(), until: z.number(), findings: z.array(findingSchema) });

/**
 * Stores what a canary found, since a canary costs money. The record is keyed by everything that the findings depend
 * on, including a hash of the API key.
 */
export class FindingStore {
  readonly #account: Account;

  constructor(account: Account) {
    this.#account = account;
  }

  /** The findings that are still valid, and their time. An unreadable file counts as none: the canary runs again. */
  async find(key: string): Promise<readonly Finding[] | undefined> {
    let text: string;
    try {
      text = await readFile(this.#path(key), "utf8");
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
      throw error;
    }
    const entry = z
      .string()
      .transform((json, context) => {
        try {
          return JSON.parse(json);
        } catch {
          context.addIssue("isn't JSON");
          return z.NEVER;
        }
      })
      .pipe(entrySchema)
      .safeParse(text).data;
    if (entry === undefined || entry.until <= Date.now()) return undefined;
    const at = new Date(entry.at).toISOString();
    return entry.findings.map((finding) =>
      finding.proven ? { ...finding, how: `${finding.how} (seen by the canary of ${at})` } : finding,
    );
  }

  /** @param complete whether they stay valid for hours; otherwise the canary is repeated soon. */
  async keep(key: string, findings: readonly Finding[], complete: boolean): Promise<void> {
    const { cacheHours, retryMinutes } = this.#account.config.canary;
    const until = Date.now() + (complete ? cacheHours * 3_600_000 : retryMinutes * 60_000);
    const path = this.#path(key);
    await mkdir(this.#account.dataFolder, { recursive: true, mode: 0o700 });
    const fresh = `${path}.${process.pid}`;
    await writeFile(fresh, JSON.stringify({ at: Date.now(), until, findings }), { mode: 0o600 });
    await rename(fresh, path);
  }

  /** An open sandbox contradicted the findings. */
  async forget(key: string): Promise<void> {
    await rm(this.#path(key), { force: true });
  }

  #path(key: string): string {
    const { apiUrl, target, snapshot, image, canary, bridge, wildcards, maximum } = this.#account.config;
    // Another version may claim more.
    const claims = claimsOf(this.#account.config);
    const settings = [apiUrl, target, snapshot, image, canary, bridge, wildcards, maximum, claims];
    const facts = JSON.stringify([key, ...settings]);
    const hash = createHash("sha256").update(facts).digest("hex");
    return join(this.#account.dataFolder, `canary-${hash}.json`);
  }
}
