import { SandboxFailed } from "@ambit/core/plugin";
import {
  type Attack,
  type AttackOutcome,
  attacks,
  type Control,
  type Decoys,
  startDecoys,
  tryUnguarded,
} from "@ambit/testkit";
import type { CommandLine } from "../../../dist/confined/arguments.js";
import { standIns } from "../../weakened/decoys-only.ts";
import {
  filterParts,
  type JailChange,
  jailParts,
  type LocalSetup,
  type PartProbe,
  type RemovableMechanism,
  WeakenedSandboxes,
} from "../../weakened/jails/index.ts";
import { type AttackOnPart, attacksOnCalls, attacksOnParts } from "./attacks-on-parts.ts";

export interface Detection {
  readonly by: "start" | "evidence" | "probe";
  readonly message: string;
  /** What else had to be removed for it to be detected. */
  readonly alsoRemoved?: string;
}

/** The outcome of removing one part of the jail. */
export interface MutantRow {
  readonly kind: "command line" | "system call filter";
  readonly name: string;
  /**
   * How the sandbox itself detected it: no jail came up, each jail failed its check, or the probe didn't prove a
   * capability. Undefined: it didn't detect it.
   */
  readonly detected: Detection | undefined;
  /** The kit's attack on it. Undefined if the remaining mechanisms stop every attack. */
  readonly attack:
    | (AttackOnPart & { readonly with: AttackOutcome; readonly without: AttackOutcome })
    | undefined;
}

export const isCaught = ({ detected, attack }: MutantRow) =>
  detected !== undefined || (attack?.with.result === "blocked" && attack.without.result === "reached");

const probeMs = 60_000;

/** Removes each part from the local sandbox's jails, one by one, and records what detects that. */
export async function runMutants(setup: LocalSetup): Promise<readonly MutantRow[]> {
  const weakened = new WeakenedSandboxes(setup);
  const decoys = await startDecoys();
  const rootsOwn = once(() => detectionWith(weakened, { keepsRoot: true }));
  const unmodifiedJails = new Map<string, Promise<AttackOutcome>>();
  const attacked = (on: AttackOnPart | undefined, change: JailChange) =>
    attackBoth(weakened, decoys, on, change, unmodifiedJails);
  try {
    const ofParts = (await partsOf(weakened)).map((part) => async (): Promise<MutantRow> => {
      const detected = await detectionOf(weakened, part, rootsOwn);
      const attack = await attacked(attacksOnParts[part], { part });
      return { kind: "command line", name: part, detected, attack };
    });
    const ofCalls = filterParts().map(({ name, filter }) => async (): Promise<MutantRow> => {
      const detected = detectionIn({
        isUp: true,
        findings: await weakened.probeCalls({ filter }, AbortSignal.timeout(probeMs)),
      });
      const attack = await attacked(attacksOnCalls[name], { filter });
      return { kind: "system call filter", name, detected, attack };
    });
    return await inParallel([...ofParts, ...ofCalls]);
  } finally {
    await decoys.close();
  }
}

/** In parallel: mutants mostly wait for their jails. */
const atOnce = 3;

async function inParallel<Result>(tasks: readonly (() => Promise<Result>)[]): Promise<readonly Result[]> {
  const results: Result[] = [];
  const waiting = tasks.entries();
  const work = async () => {
    for (const [index, task] of waiting) results[index] = await task();
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return results;
}

async function detectionWith(
  weakened: WeakenedSandboxes,
  change: JailChange,
): Promise<Detection | undefined> {
  return detectionIn(await weakened.probe(change, AbortSignal.timeout(probeMs)));
}

/** @param rootsOwn what is detected with a jail that keeps the runner's own user, root. */
async function detectionOf(
  weakened: WeakenedSandboxes,
  part: string,
  rootsOwn: () => Promise<Detection | undefined>,
): Promise<Detection | undefined> {
  const detected = await detectionWith(weakened, { part });
  if (detected !== undefined || process.getuid?.() !== 0) return detected;
  // A separate user may also prevent it. A jail of root is refused in any case, with another message if the part is
  // gone.
  const [held, gone] = [await rootsOwn(), await detectionWith(weakened, { part, keepsRoot: true })];
  if (gone === undefined || held?.message === gone.message) return undefined;
  return { ...gone, alsoRemoved: "the separate user" };
}

function once<Result>(make: () => Result): () => Result {
  let made: { readonly result: Result } | undefined;
  return () => {
    made ??= { result: make() };
    return made.result;
  };
}

/** Names of the parts of jails' command lines, over all jails that the probe opens. */
async function partsOf(weakened: WeakenedSandboxes): Promise<readonly string[]> {
  const names = new Set<string>();
  const onPlanned = (planned: readonly CommandLine[]) => {
    for (const { name } of planned.flatMap(jailParts)) names.add(name);
  };
  await weakened.probe({ onPlanned }, AbortSignal.timeout(probeMs));
  return [...names];
}

function detectionIn({ isUp, findings }: PartProbe): Detection | undefined {
  const failed = findings.find((finding) => !finding.proven);
  if (failed === undefined) return undefined;
  const message = failed.reason;
  if (isUp) return { by: "probe", message };
  return { by: message.startsWith("The jail isn't as planned") ? "evidence" : "start", message };
}

/**
 * Makes the attack in two jails that differ only in the part.
 *
 * @param unmodifiedJails outcomes of attacks with the part: one jail serves all parts that the same attack detects.
 */
async function attackBoth(
  weakened: WeakenedSandboxes,
  decoys: Decoys,
  on: AttackOnPart | undefined,
  change: JailChange,
  unmodifiedJails: Map<string, Promise<AttackOutcome>>,
): Promise<MutantRow["attack"]> {
  if (on === undefined || (on.asRoot === true && process.getuid?.() !== 0)) return undefined;
  const { alsoRemoved, asRoot = false } = on;
  const attack = attackBy(on.attack);
  const both = { isOpenedAnyway: true, keepsRoot: asRoot };
  const made = (changed: JailChange) =>
    tryUnguarded(attack, controlWith(weakened, alsoRemoved, changed), {
      capability: attack.capability,
      claims: weakened.claims,
      decoys,
      open: () => Promise.reject(new SandboxFailed("only the control opens here")),
    });
  const key = JSON.stringify(on);
  const withPart = unmodifiedJails.get(key) ?? made(both);
  unmodifiedJails.set(key, withPart);
  return { ...on, with: await withPart, without: await made({ ...both, ...change }) };
}

function controlWith(
  weakened: WeakenedSandboxes,
  without: readonly RemovableMechanism[],
  change: JailChange,
): Control {
  return {
    what: "the same jail with one part taken out",
    open: (attack, spec, _scope, decoys) =>
      weakened.open(spec, without, standIns(attack, decoys), spec.boundary.network, change),
  };
}

function attackBy(id: string): Attack {
  const found = Object.values(attacks)
    .flat()
    .find((one) => one.id === id);
  if (found === undefined) throw new RangeError(`There is no attack ${id}`);
  return found;
}
