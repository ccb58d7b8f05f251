/** The result of interleaved pairs: costs of both sides and their ratios, pair by pair. */
export interface Pairs {
  readonly ratios: readonly number[];
  readonly subject: readonly number[];
  readonly floor: readonly number[];
}

/** One side of a pair: does its work and returns the cost, in a unit that both sides share. */
export type Side = () => number | Promise<number>;

export interface PairOptions {
  readonly pairs: number;
  /** Warm-up pairs, which are discarded. Default 2. */
  readonly warmUp?: number;
}

/**
 * Runs both sides in turn, each side first in half of the pairs: load on this machine slows both, and neither always
 * benefits from the other's caches.
 */
export async function interleaved(subject: Side, floor: Side, options: PairOptions): Promise<Pairs> {
  const { pairs, warmUp = 2 } = options;
  const costs: { subject: number; floor: number }[] = [];
  for (let pair = -warmUp; pair < pairs; pair += 1) {
    let ours: number;
    let theirs: number;
    if (pair % 2 === 0) {
      ours = await subject();
      theirs = await floor();
    } else {
      theirs = await floor();
      ours = await subject();
    }
    if (pair >= 0) costs.push({ subject: ours, floor: theirs });
  }
  return {
    ratios: costs.map((cost) => cost.subject / cost.floor),
    subject: costs.map((cost) => cost.subject),
    floor: costs.map((cost) => cost.floor),
  };
}

/**
 * Measures several sides in rounds, each starting with another side. The rounds before the first are warm-up.
 *
 * @returns each side's costs, round by round.
 */
export async function rotating<SideName, Cost>(
  sides: readonly SideName[],
  measure: (side: SideName) => Promise<Cost>,
  { rounds, warmUp = 2 }: { readonly rounds: number; readonly warmUp?: number },
): Promise<ReadonlyMap<SideName, readonly Cost[]>> {
  const costs = new Map<SideName, Cost[]>(sides.map((side) => [side, []]));
  for (let round = 0; round < warmUp + rounds; round += 1) {
    const first = round % sides.length;
    for (const side of [...sides.slice(first), ...sides.slice(0, first)]) {
      const cost = await measure(side);
      if (round >= warmUp) costs.get(side)?.push(cost);
    }
  }
  return costs;
}

/** Milliseconds that a step took. */
export async function timed(step: () => unknown): Promise<number> {
  const begun = performance.now();
  await step();
  return performance.now() - begun;
}

/** Milliseconds that one of many synchronous steps took. */
export function timedEach(times: number, step: () => unknown): number {
  const begun = performance.now();
  for (let time = 0; time < times; time += 1) step();
  return (performance.now() - begun) / times;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** The smallest value that at least this share of all values doesn't exceed. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? Number.NaN;
}

/** "0.21 / 0.16 ms": the medians behind a ratio. */
export function mediansOf({ subject, floor }: Pairs, unit: string): string {
  return `${short(median(subject))} / ${short(median(floor))} ${unit}`;
}

/** Three significant digits. */
export function short(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  const magnitude = Math.abs(value);
  if (magnitude >= 1_000) return Math.round(value).toLocaleString("en");
  const digits = magnitude >= 100 ? 0 : magnitude >= 10 ? 1 : magnitude >= 1 ? 2 : 3;
  return value.toFixed(digits);
}
