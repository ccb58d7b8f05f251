import { NotProven } from "@ambit/backend-kit";
import { z } from "zod";
import type { Claim } from "../claims.js";
import { lastJson, programLine } from "../inside/programs.js";
import type { Machine } from "../platform/service.js";
import { shellLine } from "../platform/shell-line.js";
import type { Bench, Trial } from "./bench.js";

/** Of the limited sandbox and of the open one, in a boundary's units. */
export const sizes = {
  limited: { memoryMb: 1_024, cpus: 1, diskMb: 1_024 },
  open: { memoryMb: 2_048, cpus: 2, diskMb: 2_048 },
} as const;

/** MiB, between the two sizes. */
const wanted = 1_280;
/** Milliseconds of full load. */
const loadMs = 1_000;
/** Cores, between the two sizes; as near to the small one as a busy host makes it. */
const between = 1.2;
/** A neighbour's load takes from the large one: the best of some counts. */
const rounds = 3;
const limitMs = 60_000;
const fix = "check the organisation's sandbox settings, or omit this limit";

/** Last of all: what runs out of memory may take the bridge along. */
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
        // One after the other: side by side they would take from each other.
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

/** How far it came; a program that was ended counts as far as it had come. */
async function cameTo(machine: Machine, argv: readonly string[]): Promise<number> {
  const { output } = await machine.execute(shellLine(argv), limitMs);
  return z.object({ came: z.number() }).parse(lastJson(output)).came;
}

const rounded = (value: number) => Math.round(value * 10) / 10;
