import type { Capability } from "@ambit/core/plugin";

/** How each claim was proven, or how it was violated. */
export type ClaimFindings<Claim extends Capability> = Partial<Record<Claim, string | NotProven>>;

/** One attack with its control. A capability is proven if every trial that covers it reports how. */
export interface Trial<Bench, Claim extends Capability = Capability> {
  readonly shows: readonly Claim[];
  /** It measures what others leave of the host, so it runs alone, after all of them. */
  readonly measures?: true;
  /**
   * A claim that is missing in the result wasn't proven.
   *
   * @throws NotProven or any other error, for everything that it should prove.
   */
  run(bench: Bench): Promise<ClaimFindings<Claim>>;
}

/** The observation contradicts the promise. */
export class NotProven extends Error {
  override readonly name = "NotProven";

  /** @param fix for a deployer. Default: the backend's fix for this message. */
  constructor(
    message: string,
    readonly fix?: string,
  ) {
    super(message);
  }
}

/** The trial showed nothing either way, for example because a busy host kept its control from working. It is repeated. */
export class Inconclusive extends NotProven {}

/** Repeats the trial unless `holds`; the last attempt fails with this message. For controls, never for an attack. */
export function expectConclusive(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new Inconclusive(otherwise);
}

/** Fails a trial with this message unless `holds`. */
export function expectThat(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new NotProven(otherwise);
}

/** For each claim that a trial covers: how it was proven, or why it wasn't. */
export type TrialOutcome<Claim extends Capability = Capability> = ReadonlyMap<Claim, string | Error>;

const maxAttempts = 3;

/** Never rejects: an error is the outcome of every claim that the trial covers. */
export async function runTrial<Bench, Claim extends Capability>(
  { shows, run }: Trial<Bench, Claim>,
  bench: Bench,
): Promise<TrialOutcome<Claim>> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const seen = await run(bench);
      return new Map(shows.map((claim) => [claim, seen[claim] ?? new NotProven("nothing was seen of it")]));
    } catch (thrown) {
      if (thrown instanceof Inconclusive && attempt < maxAttempts) continue;
      const error = thrown instanceof Error ? thrown : new Error(String(thrown));
      return new Map(shows.map((claim) => [claim, error]));
    }
  }
}

/** Runs trials in sequence, for those that share a sandbox. */
export async function runInTurn<Bench, Claim extends Capability>(
  trials: readonly Trial<Bench, Claim>[],
  bench: Bench,
  signal: AbortSignal,
): Promise<readonly TrialOutcome<Claim>[]> {
  const outcomes: TrialOutcome<Claim>[] = [];
  for (const trial of trials) {
    if (signal.aborted) break;
    outcomes.push(await runTrial(trial, bench));
  }
  return outcomes;
}
