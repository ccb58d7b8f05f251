import type { Finding } from "@ambit/core/plugin";
import { type BridgeMutant, bridgeMutants } from "./bridge-mutants.ts";
import { removeChangedBridges, withChangedBridge } from "./changed-bridge.ts";

/** What the probe says of `inbound.ports` without one mechanism of the bridge. */
export interface BridgeMutantRow {
  readonly mutant: BridgeMutant;
  /** Why it isn't proven; undefined if nothing is noticed. */
  readonly reason: string | undefined;
}

/** As Markdown. */
export function renderBridgeMutants(rows: readonly BridgeMutantRow[]): string {
  return [
    "| removed mechanism | the probe doesn't prove |",
    "|---|---|",
    ...rows.map(
      ({ mutant, reason }) => `| ${mutant.name} | ${reason === undefined ? "–" : "`inbound.ports`"} |`,
    ),
  ].join("\n");
}

/**
 * Takes each mechanism of connections into a sandbox out of the bridge's code, one by one.
 *
 * @param plugin the folder of a backend's package.
 * @param probe of the backend whose `dist/backend.js` has this URL; it finds `inbound.ports` alone.
 */
export async function runBridgeMutants(
  plugin: string,
  probe: (url: string) => Promise<readonly Finding[]>,
): Promise<readonly BridgeMutantRow[]> {
  const reasonIn = async ({ name, patches }: Pick<BridgeMutant, "name" | "patches">) => {
    const [finding] = await probe(withChangedBridge(plugin, ["dist"], name, patches));
    return finding?.proven === false ? finding.reason : undefined;
  };
  try {
    const unchanged = await reasonIn({ name: "nothing", patches: [] });
    if (unchanged !== undefined) throw new Error(`nothing was taken out, and yet: ${unchanged}`);
    const rows: BridgeMutantRow[] = [];
    for (const mutant of bridgeMutants) rows.push({ mutant, reason: await reasonIn(mutant) });
    return rows;
  } finally {
    removeChangedBridges(plugin);
  }
}
