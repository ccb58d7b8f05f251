import { readFileSync } from "node:fs";
import { z } from "zod";
import { percentile } from "./vitals.js";

/** The event loop of a server during a time, in milliseconds. */
export interface Loop {
  /** By how much timers were late. */
  readonly delay: Spread;
  /**
   * CPU of its thread in one turn of the loop, or in 5 ms where turns are shorter: how long it serves nobody else. Other
   * load on the machine doesn't change it.
   */
  readonly cpu: Spread;
  /** How long its thread was ready and had no processor, of the whole time. */
  readonly waitedPart: number;
}

export interface Spread {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

const lineSchema = z.object({
  at: z.number(),
  looks: z.array(z.tuple([z.number(), z.number(), z.number()])),
});

/** What the plugin in the server has written. @param from, to as `Date.now()`. */
export function loopIn(file: string, from = 0, to = Number.POSITIVE_INFINITY): Loop {
  const lines = readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => lineSchema.parse(JSON.parse(line)))
    .filter(({ at }) => at >= from && at <= to);
  const looks = lines.flatMap((line) => line.looks);
  const first = lines.at(0)?.at ?? from;
  const last = lines.at(-1)?.at ?? to;
  return {
    delay: spreadOf(looks.map(([delay]) => delay)),
    cpu: spreadOf(looks.map(([, cpu]) => cpu)),
    waitedPart: looks.reduce((sum, [, , waited]) => sum + waited, 0) / Math.max(1, last - first),
  };
}

export function spreadOf(values: readonly number[]): Spread {
  return {
    p50: percentile(values, 50),
    p99: percentile(values, 99),
    max: values.reduce((max, value) => Math.max(max, value), Number.NEGATIVE_INFINITY),
  };
}
