import {
  type Allowance,
  type Attack,
  type AttackOutcome,
  allowances,
  attacks,
  type ChangingNames,
  type CredentialHost,
  canary,
  type Decoys,
  type Endpoint,
  mechanismsAgainst,
  notRun,
  startDecoys,
  verificationOf,
} from "@ambit/attacks";
import { type Capability, capabilities, type Finding, type SandboxBackend } from "@ambit/core/plugin";
import type { Control } from "../control/control.js";
import { NearDecoys } from "../stage/near-decoys.js";
import { freshId } from "../stage/stage.js";
import { opens, planRefuses } from "./refusal.js";
import { allMessagesOf, Trials, UnguardedTrials } from "./trials.js";
import { type AllowanceRow, type Assurance, type AttackRow, assuranceOf, verdictOf } from "./verdict.js";

export interface JudgeOptions {
  readonly control: Control;
  /** A module whose default export makes the backend (`() => SandboxBackend`), for attacks that start a runner. Default: the backend's `verification`. */
  readonly runnerModule?: URL | undefined;
  /** The resolver of the backend, for attacks with names that change their address. Decoys listen where it leads. */
  readonly names?: ChangingNames | undefined;
  /** The host of credentials: the backend resolves its names by `names`, and trusts its authority. */
  readonly credentialHost?: CredentialHost | undefined;
  /** Servers that a sandbox without limits reaches, where it reaches neither this host nor another sandbox. */
  readonly beyond?: readonly Endpoint[] | undefined;
  /** Why an attack, by its id, breaks no promise of this backend, besides those of its `verification`. */
  readonly exempt?: Readonly<Record<string, string>> | undefined;
  /** Only these attacks, by id, and not what must work. Default: everything. */
  readonly only?: readonly string[] | undefined;
  /** Outcomes of attacks in this control, by id. Read and filled, so that judging again repeats none. */
  readonly controlOutcomes?: Map<string, AttackOutcome> | undefined;
  /** Called before each attack, for progress. */
  onAttack?(attack: Pick<Attack, "id" | "title">): void;
}

export interface CapabilityReport {
  readonly capability: Capability;
  readonly assurance: Assurance;
  /** Why it is refused, or how that failed; for the others, what the backend's own probe observed. */
  readonly reason: string;
  readonly fix?: string;
  /** What the backend's own probe observed, if it did. */
  readonly probed?: string;
  readonly attacks: readonly AttackRow[];
  readonly allowances: readonly AllowanceRow[];
}

/** Tests one capability of a backend: a claimed one must be enforced, any other refused. */
export async function judgeCapability(
  backend: SandboxBackend,
  findings: readonly Finding[],
  capability: Capability,
  options: JudgeOptions,
): Promise<CapabilityReport> {
  const decoys = await startDecoys(options.credentialHost, options.names?.place);
  try {
    const finding = findings.find((one) => one.capability === capability);
    if (!backend.claims.includes(capability) || finding?.proven !== true) {
      return await judgeRefusal(backend, findings, capability, options, decoys);
    }
    const guard = await judgeGuard(backend, findings, capability, options, decoys);
    // What the probe saw is no reason for anything but a capability that is held.
    const reason = guard.assurance === "proven" ? finding.how : faultsOf(guard);
    return { capability, reason, probed: finding.how, ...guard };
  } finally {
    await decoys.close();
  }
}

async function judgeRefusal(
  backend: SandboxBackend,
  findings: readonly Finding[],
  capability: Capability,
  options: JudgeOptions,
  decoys: Decoys,
): Promise<CapabilityReport> {
  const empty = { capability, attacks: [], allowances: [] };
  const finding = findings.find((one) => one.capability === capability);
  const isClaimed = backend.claims.includes(capability);
  const unproven =
    finding === undefined || finding.proven
      ? "its probe has no finding for it"
      : `its probe says: ${finding.reason}`;
  const why = isClaimed ? `claimed, and not proven here: ${unproven}` : "not claimed";
  const weakened = (...faults: string[]) =>
    ({ ...empty, assurance: "weakened", reason: [...faults, why].join("\n") }) as const;
  if (!planRefuses(backend, findings, capability, decoys))
    return weakened("the planner accepts a run that requires it");
  const opened = await opens(backend, capability, decoys);
  if (!isClaimed) {
    if (opened) return weakened("open() returns a sandbox although it is required: it must reject");
    return { ...empty, assurance: "refused", reason: "not claimed" };
  }
  if (opened) {
    // It may be enforced although its probe couldn't prove it; then its sandboxes must enforce it.
    const guard = await judgeGuard(backend, findings, capability, options, decoys);
    if (guard.assurance === "escaped")
      return {
        ...weakened("open() returns a sandbox that doesn't enforce it", faultsOf(guard)),
        ...guard,
        assurance: "weakened",
      };
  }
  if (finding === undefined || finding.proven) {
    return { ...empty, assurance: "refused", reason: "claimed, but its probe has no finding for it" };
  }
  return { ...empty, assurance: "refused", reason: finding.reason, fix: finding.fix };
}

async function judgeGuard(
  backend: SandboxBackend,
  findings: readonly Finding[],
  capability: Capability,
  options: JudgeOptions,
  decoys: Decoys,
): Promise<Pick<CapabilityReport, "assurance" | "attacks" | "allowances">> {
  const verification = verificationOf(backend);
  const runnerModule = options.runnerModule ?? verification.runnerModule;
  const exempt = { ...verification.exempt, ...options.exempt };
  // A capability that isn't proven here can't be required in addition.
  const claims = backend.claims.filter(
    (claim) => claim === capability || findings.some((one) => one.capability === claim && one.proven),
  );
  const near = new NearDecoys(backend.open.bind(backend), decoys.secret, freshId, options.beyond);
  const place = {
    near: () => near.targets(),
    capability,
    claims,
    decoys,
    runnerModule,
    open: backend.open.bind(backend),
    gaps: backend.gaps.bind(backend),
  };
  const guarded = new Trials(place);
  const unguarded = new UnguardedTrials(options.control, place);
  const attackRows: AttackRow[] = [];
  const allowanceRows: AllowanceRow[] = [];
  const restore = plantInEnvironment(decoys.secret);
  let fault: string | undefined;
  try {
    const allowed = options.only === undefined ? usable(allowances[capability], options) : [];
    for (const { id, title, ...rest } of allowed) {
      allowanceRows.push({ id, title, outcome: await guarded.try({ id, title, ...rest }) });
    }
    for (const attack of applicable(attacks[capability], { ...options, runnerModule })) {
      options.onAttack?.(attack);
      const known = options.controlOutcomes?.get(attack.id);
      const control = known ?? (await unguarded.try(attack));
      options.controlOutcomes?.set(attack.id, control);
      const outcome = await guarded.try(attack);
      attackRows.push(rowOf(attack, control, outcome, { ...options, exempt }));
    }
  } finally {
    restore();
    await near.close();
    for (const trials of [unguarded, guarded])
      await trials.close().catch((error: unknown) => {
        fault = allMessagesOf(error);
      });
  }
  if (fault !== undefined) {
    const outcome = notRun(fault);
    allowanceRows.push({ id: `${capability}/close`, title: "close the sandbox", outcome });
  }
  const assurance = fault === undefined ? assuranceOf(attackRows, allowanceRows) : "useless";
  return { assurance, attacks: attackRows, allowances: allowanceRows };
}

/** What was observed of attacks and allowances with the wrong outcome, in one line. */
export function faultsOf({
  attacks: made,
  allowances: allowed,
}: Pick<CapabilityReport, "attacks" | "allowances">): string {
  const faults = [
    ...made
      .filter(({ verdict }) => ["escaped", "broken", "toothless"].includes(verdict))
      .map(({ id, title, verdict, control, guarded }) => {
        const seen =
          verdict === "escaped" ? guarded.detail : `control: ${control.detail}; guarded: ${guarded.detail}`;
        return `${verdict}: ${title} (${seen})${stoppedBy(id)}`;
      }),
    ...allowed
      .filter(({ outcome }) => outcome.result !== "reached")
      .map(({ title, outcome }) => `must work: ${title} (${outcome.detail})`),
  ];
  return faults.length === 0 ? "no attack worked in the control, so nothing is proven" : faults.join("\n");
}

/** What stops the attack elsewhere: what a backend lacks in which it works. */
function stoppedBy(id: string): string {
  const attack = capabilities
    .flatMap((capability): readonly Attack[] => attacks[capability])
    .find((one) => one.id === id);
  return attack === undefined ? "" : `; elsewhere it is stopped by ${mechanismsAgainst(attack).join(", ")}`;
}

/** Why an attack can't be made without an option of the author's; undefined if it can. */
export function missingOption(
  { needsRunner, needsNames, needsCredentials }: Attack,
  {
    runnerModule,
    names,
    credentialHost,
  }: Partial<Pick<JudgeOptions, "runnerModule" | "names" | "credentialHost">>,
): string | undefined {
  if (needsRunner === true && runnerModule === undefined) return "runnerModule";
  if (needsNames === true && names === undefined) return "names";
  return needsCredentials === true && credentialHost === undefined ? "credentialHost" : undefined;
}

/** The attacks that are possible with the author's options. */
export function applicable(
  all: readonly Attack[],
  {
    runnerModule,
    names,
    credentialHost,
    only,
  }: Partial<Pick<JudgeOptions, "runnerModule" | "names" | "credentialHost" | "only">>,
): readonly Attack[] {
  return all
    .filter((attack) => missingOption(attack, { runnerModule, names, credentialHost }) === undefined)
    .filter(({ id }) => only === undefined || only.includes(id));
}

function usable<T extends Allowance>(
  trials: readonly T[],
  { credentialHost }: Pick<JudgeOptions, "credentialHost">,
): readonly T[] {
  return trials.filter(({ needsCredentials }) => needsCredentials !== true || credentialHost !== undefined);
}

function rowOf(
  attack: Attack,
  control: AttackRow["control"],
  guarded: AttackRow["guarded"],
  options: Pick<JudgeOptions, "control" | "exempt">,
): AttackRow {
  const { id, title } = attack;
  const without = attack.inOpenSandbox === true ? "the boundary" : options.control.without?.(attack);
  const reason = options.exempt?.[id];
  const row = { id, title, ...(without === undefined ? {} : { without }), control };
  if (reason === undefined) return { ...row, guarded, verdict: verdictOf(attack, control, guarded) };
  return {
    ...row,
    guarded: { ...guarded, detail: `exempt: ${reason} (${guarded.detail})` },
    verdict: "exempt",
  };
}

/** The runner's own environment holds the secret during attacks, so that a leak is found inside. */
function plantInEnvironment(secret: string): () => void {
  process.env[canary] = secret;
  return () => {
    delete process.env[canary];
  };
}
