import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { probeSpec } from "@ambit/backend-kit";
import {
  type Boundary,
  type Capability,
  type Finding,
  messageOf,
  type NetworkBoundary,
} from "@ambit/core/plugin";
import { type LoopbackDaytona, startLoopbackDaytona } from "@ambit/daytona-loopback";
import { DaytonaSandbox } from "../../dist/backend.js";
import { configSchema } from "../../dist/config.js";
import { loopbackOptions, settingsFor } from "../support/settings.ts";
import { ChangingPlatform, type PlatformChange } from "./changing-platform.ts";
import { type Mutant, mutants, sizeMutants } from "./mutants.ts";

/** What notices that a mechanism is missing. */
export interface DaytonaMutantRow {
  readonly mutant: Mutant;
  /** Why no sandbox opens; undefined if one does. */
  readonly start: string | undefined;
  /** What the canary doesn't prove; not run for a mechanism that no capability rests on. */
  readonly canary: readonly {
    readonly capability: Capability;
    readonly reason: string;
    readonly fix: string;
  }[];
}

/** Whether what notices it, notices this mechanism: the canary each capability, or the start. */
export function isNoticed({ mutant, start, canary }: DaytonaMutantRow): boolean {
  return mutant.breaks.length === 0 ? start !== undefined : isNoticedBy(canary, mutant);
}

function isNoticedBy(canary: DaytonaMutantRow["canary"], { breaks, reason }: Mutant): boolean {
  return breaks.every((broken) =>
    canary.some((found) => found.capability === broken && reason.test(`${found.reason}: ${found.fix}`)),
  );
}

/** As Markdown. */
export function renderDaytonaMutants(rows: readonly DaytonaMutantRow[]): string {
  const lines = rows.map(({ mutant: { name, of, breaks }, start, canary }) => {
    const found = canary.filter(({ capability }) => breaks.includes(capability));
    const unproven = found.map(({ capability }) => `\`${capability}\``).join(", ");
    return `| ${of} | ${name} | ${start === undefined ? "–" : "refused"} | ${unproven || "–"} |`;
  });
  return [
    "| of the | removed mechanism | each start | the canary doesn't prove |",
    "|---|---|---|---|",
    ...lines,
  ].join("\n");
}

const timeoutMs = 120_000;
/** Mutants mostly wait for attempts to time out. */
const atOnce = 4;

/** Of these mutants the canary looks at every capability, to show that the others are proven. */
export const wholeCanaries: readonly string[] = [
  "nothing",
  "`networkBlockAll`",
  "`domainAllowList`",
  "placeholders instead of secrets",
  "a cleared environment",
];

/**
 * Takes each mechanism out, one by one, and records what notices: each start of a sandbox, and the canary, which looks at what
 * the mechanism enforces.
 *
 * @throws Error if something is noticed although nothing is missing
 */
export async function runDaytonaMutants(
  chosen: readonly Mutant[] = mutants,
): Promise<readonly DaytonaMutantRow[]> {
  const shared = await startLoopbackDaytona(loopbackOptions());
  try {
    const whole = await rowOf({ name: "nothing", of: "order", breaks: [], reason: /^$/ }, shared, true);
    const noticed = [whole.start, ...whole.canary.map(({ reason }) => reason)].find(
      (one) => one !== undefined,
    );
    if (noticed !== undefined) throw new Error(`nothing was taken out, and yet: ${noticed}`);
    const rows: DaytonaMutantRow[] = [];
    const waiting = chosen.entries();
    const lane = async () => {
      for (const [index, mutant] of waiting) rows[index] = await rowOn(shared, mutant);
    };
    await Promise.all(Array.from({ length: atOnce }, lane));
    return rows;
  } finally {
    await shared.close();
  }
}

async function rowOn(shared: LoopbackDaytona, mutant: Mutant): Promise<DaytonaMutantRow> {
  if (mutant.loopback === undefined) return rowOf(mutant, shared, mutant.breaks.length > 0);
  const own = await startLoopbackDaytona(loopbackOptions(mutant.loopback));
  try {
    return await rowOf(mutant, own, true);
  } finally {
    await own.close();
  }
}

async function rowOf(
  mutant: Mutant,
  daytona: LoopbackDaytona,
  runsCanary: boolean,
): Promise<DaytonaMutantRow> {
  const { change = {} } = mutant;
  const start = await withBackend(daytona, change, settingsOf(mutant), (backend) =>
    whyNoneOpens(backend, boundariesFor(mutant)),
  );
  const findings = runsCanary
    ? await findingsOf(daytona, change, settingsOf(mutant), {
        isNoticed: (found) => isNoticedBy(unprovenOf(found), mutant),
        ...(wholeCanaries.includes(mutant.name) ? {} : { claims: mutant.breaks }),
      })
    : [];
  return { mutant, start, canary: unprovenOf(findings) };
}

function unprovenOf(findings: readonly Finding[]): DaytonaMutantRow["canary"] {
  return findings.flatMap((one) => (one.proven ? [] : [one]));
}

/** What the canary says when a control didn't work, or what is allowed. */
const inconclusive = /without limits|so nothing is proven|is listed and not reached/;

interface FindingsOptions {
  readonly isNoticed?: (findings: readonly Finding[]) => boolean;
  /** What the canary looks at. Default: everything. */
  readonly claims?: readonly Capability[];
}

function findingsOf(
  daytona: LoopbackDaytona,
  change: PlatformChange,
  settings: object,
  { isNoticed, claims }: FindingsOptions = {},
): Promise<readonly Finding[]> {
  const probe = () =>
    withBackend(daytona, { ...change, isConcealed: true }, settings, (backend) =>
      backend.probe(AbortSignal.timeout(timeoutMs), claims),
    );
  return conclusiveFindings(probe, isNoticed);
}

/** A canary's, repeated if they show nothing, or not what is missing, since a busy machine answered too late. */
export async function conclusiveFindings(
  probe: () => Promise<readonly Finding[]>,
  isNoticed: (findings: readonly Finding[]) => boolean = () => true,
): Promise<readonly Finding[]> {
  for (let left = 3; ; left -= 1) {
    const findings = await probe();
    const isConclusive =
      findings.every((one) => one.proven || !inconclusive.test(one.reason)) && isNoticed(findings);
    if (isConclusive || left === 1) return findings;
  }
}

/** A sandbox of twice the size gives more only if other programs leave it the processors. */
export async function runSizeMutants(): Promise<readonly DaytonaMutantRow[]> {
  const daytona = await startLoopbackDaytona(loopbackOptions({ organization: { ownProcessors: true } }));
  try {
    const all: PlatformChange = {
      order: (order, secretOf) =>
        // The canary's small sandbox has one core.
        order.cpu === 1
          ? sizeMutants.reduce((left, { change }) => change?.order?.(left, secretOf) ?? left, order)
          : order,
    };
    const findings = await findingsOf(daytona, all, ofImage);
    const rows: DaytonaMutantRow[] = [];
    for (const mutant of sizeMutants) {
      const canary = findings.flatMap((one) =>
        !one.proven && mutant.breaks.some((broken) => broken === one.capability) ? [one] : [],
      );
      const start = await withBackend(daytona, mutant.change ?? {}, ofImage, (backend) =>
        whyNoneOpens(backend, [{ resources: { memoryMb: 1_024, cpus: 1, diskMb: 1_024 } }]),
      );
      rows.push({ mutant, start, canary });
    }
    return rows;
  } finally {
    await daytona.close();
  }
}

const ofImage = { snapshot: undefined, image: "node:22" };
const settingsOf = ({ snapshot }: Mutant) => (snapshot === undefined ? {} : { snapshot });

/** Each that the mechanism enforces. */
function boundariesFor({ breaks }: Mutant): readonly Partial<Boundary>[] {
  const networks: Partial<Record<Capability, NetworkBoundary>> = {
    "network.allow-cidr": {
      mode: "allowlist",
      rules: [{ kind: "range", cidr: "10.99.0.10/32", family: 4 }],
    },
    "network.allow-host": {
      mode: "allowlist",
      rules: [{ kind: "host", name: "name.example.test", subdomains: false }],
    },
  };
  const closed: NetworkBoundary = { mode: "off", rules: [] };
  const broken = breaks.map((capability) => networks[capability] ?? closed);
  return [...new Set(broken.length === 0 ? [closed] : broken)].map((network) => ({ network }));
}

/** @returns why none opens; undefined if one does. */
async function whyNoneOpens(
  backend: DaytonaSandbox,
  boundaries: readonly Partial<Boundary>[],
): Promise<string | undefined> {
  const scope = { signal: AbortSignal.timeout(timeoutMs), defer: () => undefined };
  const required = ["environment.per-tool", "process.contained"] as const;
  const reasons: string[] = [];
  for (const boundary of boundaries) {
    try {
      const sandbox = await backend.open(probeSpec(boundary, { required }), scope);
      await sandbox.close();
      return undefined;
    } catch (error) {
      reasons.push(messageOf(error));
    }
  }
  return reasons.join("; ");
}

async function withBackend<Result>(
  daytona: LoopbackDaytona,
  change: PlatformChange,
  more: object,
  use: (backend: DaytonaSandbox) => Promise<Result>,
): Promise<Result> {
  const dataFolder = await mkdtemp(join(tmpdir(), "ambit-daytona-mutant-"));
  const platform = new ChangingPlatform(daytona.apiUrl, change);
  const apiUrl = await platform.listen();
  const backend = new DaytonaSandbox(
    configSchema.parse({ ...settingsFor(daytona), ...more, apiUrl, dataFolder }),
  );
  try {
    return await use(backend);
  } finally {
    await platform.close();
    await rm(dataFolder, { recursive: true, force: true, maxRetries: 5 });
  }
}
