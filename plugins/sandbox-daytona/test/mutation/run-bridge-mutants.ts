import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Capability } from "@ambit/core/plugin";
import { startLoopbackDaytona } from "@ambit/daytona-loopback";
import { type BridgeMutant, bridgeMutants as mutants } from "@ambit/fakes/bridge-mutants";
import { removeChangedBridges, withChangedBridge } from "@ambit/fakes/changed-bridge";
import { configSchema } from "../../dist/config.js";
import { loopbackOptions, settingsFor } from "../support/settings.ts";
import type { Mutant } from "./mutants.ts";
import { conclusiveFindings, type DaytonaMutantRow } from "./run-mutants.ts";

const plugin = fileURLToPath(new URL("../../", import.meta.url));
const timeoutMs = 120_000;

const mutantOf = ({ name, reason }: Pick<BridgeMutant, "name" | "reason">): Mutant => ({
  name,
  of: "bridge",
  breaks: ["inbound.ports"],
  reason,
});

/** Of connections into a sandbox. */
export const bridgeMutants: readonly Mutant[] = mutants.map(mutantOf);

/**
 * Takes each mechanism of connections into a sandbox out of the bridge's code, one by one.
 *
 * @throws Error if something is noticed although nothing is missing
 */
export async function runDaytonaBridgeMutants(): Promise<readonly DaytonaMutantRow[]> {
  const daytona = await startLoopbackDaytona(loopbackOptions());
  const rowOf = async (
    { name, patches, reason }: BridgeMutant,
    claims?: readonly Capability[],
  ): Promise<DaytonaMutantRow> => {
    const changed: typeof import("../../dist/backend.js") = await import(
      withChangedBridge(plugin, ["dist", "inside"], name, patches)
    );
    // Findings that are kept aren't made again.
    const probe = async () => {
      const dataFolder = await mkdtemp(join(tmpdir(), "ambit-daytona-mutant-"));
      try {
        const config = configSchema.parse({ ...settingsFor(daytona), dataFolder });
        return await new changed.DaytonaSandbox(config).probe(AbortSignal.timeout(timeoutMs), claims);
      } finally {
        await rm(dataFolder, { recursive: true, force: true, maxRetries: 5 });
      }
    };
    const findings = await conclusiveFindings(probe);
    const canary = findings.flatMap((one) => (one.proven ? [] : [one]));
    return { mutant: mutantOf({ name, reason }), start: undefined, canary };
  };
  try {
    const { canary } = await rowOf({ name: "nothing", patches: [], reason: /^$/ });
    const [found] = canary;
    if (found !== undefined) throw new Error(`nothing was taken out, and yet: ${found.reason}`);
    const rows: DaytonaMutantRow[] = [];
    for (const mutant of mutants) rows.push(await rowOf(mutant, ["inbound.ports"]));
    return rows;
  } finally {
    removeChangedBridges(plugin);
    await daytona.close();
  }
}
