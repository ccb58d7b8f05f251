import { setImmediate as nextTurn } from "node:timers/promises";
import { type Registry, readabilityIn } from "@ambit/core";
import type { Installation } from "@ambit/core/plugin";

/** A loaded agent. */
export interface LoadedAgent {
  readonly id: string;
  readonly aliases: readonly string[];
  readonly title: string;
  readonly pinned: Installation["packages"];
  /** Null: it isn't installed, or is part of its plugin. */
  readonly installed: NonNullable<ReturnType<Installation["installed"]>> | null;
  /** Whether it is part of its plugin. */
  readonly comesAlong: boolean;
}

/** The loaded agents, with the versions of those that are installed. Each is looked for in a turn of its own: that reads files. */
export async function agentsIn(registry: Registry): Promise<readonly LoadedAgent[]> {
  const agents: LoadedAgent[] = [];
  for (const { actor } of registry.knownCandidates().harnesses) {
    const { id, aliases, installation } = actor;
    await nextTurn();
    agents.push({
      id,
      aliases,
      title: installation?.title ?? id,
      pinned: installation?.packages ?? [],
      installed: installation?.installed() ?? null,
      comesAlong: installation === undefined,
    });
  }
  return agents;
}

/** Agents whose version isn't the tested one: their permissions were never tried. Pure. */
export function untestedOf(agents: readonly LoadedAgent[]) {
  return agents.flatMap(({ id, installed }) => {
    if (installed === null) return [];
    const { version, tested, agent } = installed;
    if (version !== tested) return [{ agent: id, version, tested }];
    // The agent behind an adapter that is the tested one.
    return agent?.tested === undefined || agent.version === agent.tested
      ? []
      : [{ agent: id, version: agent.version, tested: agent.tested }];
  });
}

/** What the deployer should look at of the agents, a sentence each, with its fix. */
export async function agentNotices(
  registry: Registry,
  agents: readonly LoadedAgent[],
): Promise<readonly string[]> {
  const { sandboxes, harnesses } = registry.knownCandidates();
  // Agents share Node.js.
  const unreadable = new Set<string>();
  for (const { actor } of harnesses) {
    await nextTurn();
    for (const { actor: sandbox } of sandboxes) {
      const readability = readabilityIn(sandbox, actor);
      if (readability !== true) unreadable.add(`${readability.reason} (fix: ${readability.fix})`);
    }
  }
  return [
    ...unreadable,
    ...untestedOf(agents).map(
      (untested) =>
        `${untested.agent} ${versionText(untested)}: whether it asks before it acts was tested with that version only. Install it: ambit agents install ${untested.agent}`,
    ),
  ];
}

/** A version other than the tested one may behave differently. */
export function versionText({
  version,
  tested,
}: {
  readonly version: string;
  readonly tested: string;
}): string {
  return version === tested ? version : `${version} (tested: ${tested})`;
}
