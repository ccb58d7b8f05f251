import type { Capability } from "@ambit/core/plugin";

/** What was done for each claim, or what was seen of it that isn't what was promised. */
export type Seen<Claim extends Capability> = Partial<Record<Claim, string | NotProven>>;

/** One attack with its control. A capability is proven when every trial that shows it says what it saw. */
export interface Trial<Bench, Claim extends Capability = Capability> {
  readonly shows: readonly Claim[];
  /**
   * A claim that isn't in the answer wasn't seen.
   *
   * @throws NotProven or any other error, for everything that it should prove.
   */
  run(bench: Bench): Promise<Seen<Claim>>;
}

/** What was seen isn't what was promised. */
export class NotProven extends Error {
  override readonly name = "NotProven";

  /** @param fix what a deployer does about it. Default: the backend's own for this message. */
  constructor(
    message: string,
    readonly fix?: string,
  ) {
    super(message);
  }
}

/** Fails a trial with these words unless `holds`. */
export function expectThat(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new NotProven(otherwise);
}

/** By each claim that a trial shows: what was done, or why that proves nothing. */
export type Outcome<Claim extends Capability = Capability> = ReadonlyMap<Claim, string | Error>;

/** Never rejects: what goes wrong is the outcome of everything that the trial shows. */
export async function runTrial<Bench, Claim extends Capability>(
  { shows, run }: Trial<Bench, Claim>,
  bench: Bench,
): Promise<Outcome<Claim>> {
  try {
    const seen = await run(bench);
    return new Map(shows.map((claim) => [claim, seen[claim] ?? new NotProven("nothing was seen of it")]));
  } catch (thrown) {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown));
    return new Map(shows.map((claim) => [claim, error]));
  }
}

/** One after the other, for trials that share a sandbox. */
export async function runInTurn<Bench, Claim extends Capability>(
  trials: readonly Trial<Bench, Claim>[],
  bench: Bench,
  signal: AbortSignal,
): Promise<readonly Outcome<Claim>[]> {
  const outcomes: Outcome<Claim>[] = [];
  for (const trial of trials) {
    if (signal.aborted) break;
    outcomes.push(await runTrial(trial, bench));
  }
  return outcomes;
}
