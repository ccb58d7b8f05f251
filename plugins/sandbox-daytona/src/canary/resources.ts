import { NotProven } from "@ambit/backend-kit";
import { z } from "zod";
import type { Claim } from "../claims.js";
import { lastJson, programLine } from "../inside/programs.js";
import type { Machine } from "../platform/service.js";
import { shellLine } from "../platform/shell-line.js";
import type { Bench, Trial } from "./bench.js";

/** Sizes of the limited and the open sandbox, in a boundary's units. */
export const sizes = {
  limited: { memoryMb: 1_024, cpus: 1, diskMb: 1_024 },
  open: { memoryMb: 2_048, cpus: 2, diskMb: 2_048 },
} as const;

/** MiB, between the two sizes. */
const wanted = 1_280;
/** Milliseconds of full load. */
const loadMs = 1_000;
/** Cores, between the two sizes; close to the small one, for busy hosts. */
const between = 1.2;
/** Other load slows the large one down, so the best of several measurements is taken. */
const rounds = 3;
const limitMs = 60_000;
const fix = "check the organisation's sandbox settings, or omit this limit";

/** Last, since a process that runs out of memory may end the bridge too. */
export const resourceTrials: readonly Trial[] = [
  trial("resources.memory", { kind: "memory", mib: wanted }, wanted, "MiB of memory"),
  trial("resources.cpu", { kind: "cpu", ms: loadMs }, between, "cores"),
  trial("resources.disk", { kind: "disk", mib: wanted }, wanted, "MiB of disk"),
];

function trial(capability: Claim, order: object, threshold: number, unit: string): Trial {
  return {
    shows: [capability],
    async run({ open, limited, account }: Bench) {
      const argv = await programLine(account.config.bridge.node, "strain", order);
      let [much, little] = [0, 0];
      for (let round = 0; round < rounds && much < threshold; round += 1) {
        // Sequential: in parallel they would slow each other down.
        much = Math.max(much, await cameTo(open.machine, argv));
        little = Math.max(little, await cameTo(limited.machine, argv));
      }
      if (much < threshold) {
        throw new NotProven(
          `a sandbox of twice the size didn't give more than ${rounded(much)} ${unit}`,
          fix,
        );
      }
      if (little >= threshold) {
        throw new NotProven(`a sandbox with less gave ${rounded(little)} ${unit}`, fix);
      }
      const how = `${rounded(much)} ${unit} could be used in a large sandbox, and ${rounded(little)} in a small one`;
      return { [capability]: how };
    },
  };
}

/** The amount it reached; a program that was killed counts up to that point. */
async function cameTo(machine: Machine, argv: readonly string[]): Promise<number> {
  const { output } = await machine.execute(shellLine(argv), limitMs);
  return z.object({ came: z.number() }).parse(lastJson(output)).came;
}

const rounded = (value: number) => Math.round(value * 10) / 10;
