import { existsSync } from "node:fs";
import { join } from "node:path";
import { agentsFolder } from "../../floors/agent-launch.js";
import { type RealAgent, realAgents } from "../../floors/driver-messages.js";
import type { GoalMeasurement, GoalOptions, Need } from "../../goal.js";
import { type AgentPair, type AgentPairOptions, openPair } from "../../subjects/agents/real-agents.js";

const packages: Readonly<Record<RealAgent, string>> = {
  codex: "@agentclientprotocol/codex-acp",
  gemini: "@google/gemini-cli",
  pi: "pi-acp",
};

/** Agents that every test run has installed. */
export const installedAgents: Need = {
  missing: async () => {
    const missing = realAgents.filter((id) => !existsSync(join(agentsFolder, "node_modules", packages[id])));
    return missing.length === 0 ? undefined : `not installed: ${missing.join(", ")}: npm run setup`;
  },
};

/** Measures one agent after the other, each compared with the ACP SDK that drives the same agent. */
export async function eachAgent(
  { progress }: GoalOptions,
  measure: (pair: AgentPair, agent: RealAgent) => Promise<readonly GoalMeasurement[]>,
  options: AgentPairOptions = {},
  agents: readonly RealAgent[] = realAgents,
): Promise<readonly GoalMeasurement[]> {
  const measured: GoalMeasurement[] = [];
  for (const agent of agents) {
    progress(`  ${agent}${options.confined === true ? ", confined" : ""}`);
    await using pair = await openPair(agent, options);
    measured.push(...(await measure(pair, agent)));
  }
  return measured;
}
