import { lookProgram, readLook } from "@ambit/attacks/inside";
import { NotProven } from "@ambit/backend-kit";
import type { Claim } from "../claims.js";
import type { Machine } from "../platform/service.js";
import { shellLine } from "../platform/shell-line.js";
import type { CanaryAttempts, CanaryBench, CanaryTrial } from "./bench.js";

/** Sizes of the limited and the open sandbox, in a boundary's units. */
export const sizes = {
  limited: { memoryMb: 1_024, cpus: 1, diskMb: 1_024 },
  open: { memoryMb: 2_048, cpus: 2, diskMb: 2_048 },
} as const;

/** MiB, between the two sizes. */
const mib = 1_280;
/** Hundredths of a core, between the two sizes; close to the small one, for busy hosts. */
const between = 120;
/** Other load slows the large one down, so the best of several measurements is taken. */
const rounds = 3;
const limitMs = 60_000;
const fix = "check the organisation's sandbox settings, or omit this limit";

/** Last, since a process that runs out of memory may end the bridge too. */
export const resourceTrials: readonly CanaryTrial[] = [
  trial("resources.memory", { used: { try: "memory", mib } }, mib, (amount) => `${amount} MiB of memory`),
  trial(
    "resources.cpu",
    { used: { try: "cpu", ms: 1_000, threads: 4 } },
    between,
    (amount) => `${amount / 100} cores`,
  ),
  trial("resources.disk", { used: { try: "disk", mib } }, mib, (amount) => `${amount} MiB of disk`),
];

/** @param say the amount in words. */
function trial(
  capability: Claim,
  attempts: CanaryAttempts,
  threshold: number,
  say: (amount: number) => string,
): CanaryTrial {
  return {
    shows: [capability],
    async run({ open, limited, account }: CanaryBench) {
      const argv = await lookProgram(account.config.bridge.node, attempts);
      let [much, little] = [0, 0];
      for (let round = 0; round < rounds && much < threshold; round += 1) {
        // Sequential: in parallel they would slow each other down.
        much = Math.max(much, await amountIn(open.machine, argv));
        little = Math.max(little, await amountIn(limited.machine, argv));
      }
      if (much < threshold) {
        throw new NotProven(`a sandbox of twice the size didn't give ${say(threshold)}`, fix);
      }
      if (little >= threshold) {
        throw new NotProven(`a sandbox with less gave ${say(little)}`, fix);
      }
      const rest = little === 0 ? "not in a small one" : `${say(little)} in a small one`;
      return { [capability]: `${say(much)} could be used in a large sandbox, and ${rest}` };
    },
  };
}

/** The amount that was used; 0 if the program was refused it, or killed for it. */
async function amountIn(machine: Machine, argv: readonly [string, ...string[]]): Promise<number> {
  const { exitCode, output } = await machine.execute(shellLine(argv), limitMs);
  return exitCode === 0 ? Number.parseFloat(readLook(output).used ?? "0") : 0;
}
