import { type SandboxBackend, SandboxFailed } from "@ambit/core/plugin";
import {
  type Attack,
  attacks,
  type Control,
  type Decoys,
  type Outcome,
  startDecoys,
  tryUnguarded,
} from "@ambit/testkit";
import { standIns } from "../decoys-only.js";
import {
  filterParts,
  type JailChange,
  jailParts,
  type Mechanism,
  type PartProbe,
  WeakenedSandboxes,
} from "../weakened/index.js";
import { type AttackOnPart, attacksOnCalls, attacksOnParts } from "./attacks-on-parts.js";

export interface Sighting {
  readonly by: "start" | "evidence" | "probe";
  readonly words: string;
  /** What else had to be gone for it to be seen. */
  readonly besides?: string;
}

/** What became of one part of the jail that was taken out. */
export interface MutantRow {
  readonly kind: "command line" | "system call filter";
  readonly name: string;
  /**
   * How the sandbox itself saw it: no jail came up, each jail was refused when it was looked at, or the probe proved
   * nothing of a capability. Undefined: it didn't see it.
   */
  readonly seen: Sighting | undefined;
  /** The kit's attack on it. Undefined where none reaches it through what else holds. */
  readonly attack: (AttackOnPart & { readonly with: Outcome; readonly without: Outcome }) | undefined;
}

export const isCaught = ({ seen, attack }: MutantRow) =>
  seen !== undefined || (attack?.with.result === "blocked" && attack.without.result === "reached");

const probeMs = 60_000;

/**
 * Takes each part out of the local sandbox's jails, one by one, and looks who notices. Undefined for another backend.
 *
 * @param isWanted default: every part.
 */
export async function runMutants(
  backend: SandboxBackend,
  isWanted: (name: string) => boolean = () => true,
): Promise<readonly MutantRow[] | undefined> {
  const weakened = WeakenedSandboxes.beside(backend);
  if (weakened === undefined) return undefined;
  const decoys = await startDecoys();
  const rootsOwn = once(() => sightingWith(weakened, { keepsRoot: true }));
  const wholeJails = new Map<string, Promise<Outcome>>();
  const attacked = (on: AttackOnPart | undefined, change: JailChange) =>
    attackBoth(weakened, decoys, on, change, wholeJails);
  try {
    const ofParts = (await partsOf(weakened)).filter(isWanted).map((part) => async (): Promise<MutantRow> => {
      const seen = await sightingOf(weakened, part, rootsOwn);
      const attack = await attacked(attacksOnParts[part], { part });
      return { kind: "command line", name: part, seen, attack };
    });
    const ofCalls = filterParts()
      .filter(({ name }) => isWanted(name))
      .map(({ name, filter }) => async (): Promise<MutantRow> => {
        const seen = whoSaw({
          isUp: true,
          findings: await weakened.probeCalls({ filter }, AbortSignal.timeout(probeMs)),
        });
        const attack = await attacked(attacksOnCalls[name], { filter });
        return { kind: "system call filter", name, seen, attack };
      });
    return await inParallel([...ofParts, ...ofCalls]);
  } finally {
    await decoys.close();
  }
}

/** Mutants wait for their jails most of the time. */
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

async function sightingWith(weakened: WeakenedSandboxes, change: JailChange): Promise<Sighting | undefined> {
  return whoSaw(await weakened.probe(change, AbortSignal.timeout(probeMs)));
}

/** @param rootsOwn what is seen of a jail that keeps the runner's own user, root. */
async function sightingOf(
  weakened: WeakenedSandboxes,
  part: string,
  rootsOwn: () => Promise<Sighting | undefined>,
): Promise<Sighting | undefined> {
  const seen = await sightingWith(weakened, { part });
  if (seen !== undefined || process.getuid?.() !== 0) return seen;
  // A user of its own may hold beside it. A jail of root's is refused in any case: in other words, if the part is gone.
  const [held, gone] = [await rootsOwn(), await sightingWith(weakened, { part, keepsRoot: true })];
  if (gone === undefined || held?.words === gone.words) return undefined;
  return { ...gone, besides: "a user of its own" };
}

function once<Result>(make: () => Result): () => Result {
  let made: { readonly result: Result } | undefined;
  return () => {
    made ??= { result: make() };
    return made.result;
  };
}

/** Names of what the command lines of jails say, over all that the probe opens. */
async function partsOf(weakened: WeakenedSandboxes): Promise<readonly string[]> {
  const names = new Set<string>();
  const onPlanned = (planned: readonly string[]) => {
    for (const { name } of jailParts(planned)) names.add(name);
  };
  await weakened.probe({ onPlanned }, AbortSignal.timeout(probeMs));
  return [...names];
}

function whoSaw({ isUp, findings }: PartProbe): Sighting | undefined {
  const failed = findings.find((finding) => !finding.proven);
  if (failed === undefined) return undefined;
  const words = failed.reason;
  if (isUp) return { by: "probe", words };
  return { by: words.startsWith("The jail isn't as planned") ? "evidence" : "start", words };
}

/**
 * Makes the attack in two jails that differ in nothing but the part.
 *
 * @param wholeJails what came of attacks where the part is there: one jail serves all parts that the same attack finds.
 */
async function attackBoth(
  weakened: WeakenedSandboxes,
  decoys: Decoys,
  on: AttackOnPart | undefined,
  change: JailChange,
  wholeJails: Map<string, Promise<Outcome>>,
): Promise<MutantRow["attack"]> {
  if (on === undefined || (on.asRoot === true && process.getuid?.() !== 0)) return undefined;
  const { besides, asRoot = false } = on;
  const attack = attackBy(on.attack);
  const both = { isOpenedAnyway: true, keepsRoot: asRoot };
  const made = (changed: JailChange) =>
    tryUnguarded(attack, controlWith(weakened, besides, changed), {
      capability: attack.capability,
      claims: weakened.claims,
      decoys,
      open: () => Promise.reject(new SandboxFailed("only the control opens here")),
    });
  const key = JSON.stringify(on);
  const withPart = wholeJails.get(key) ?? made(both);
  wholeJails.set(key, withPart);
  return { ...on, with: await withPart, without: await made({ ...both, ...change }) };
}

function controlWith(
  weakened: WeakenedSandboxes,
  without: readonly Mechanism[],
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
