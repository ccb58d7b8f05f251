import type { Agent, StartScope } from "@ambit/core/plugin";
import { closeAgent } from "../acp-agent.js";
import {
  type BeginAgentOptions,
  type BegunAgent,
  beginAgent,
  orExplained,
  unlessStopped,
  whyLate,
} from "./begin-agent.js";
import { type AgentVersions, openConversation } from "./open-conversation.js";

export interface StartAgentOptions extends BeginAgentOptions {
  /** Absent for an agent that is part of the plugin. */
  readonly versions?: AgentVersions | undefined;
  /** The agent, if it was started ahead with the same launch. Default: it is started now. */
  readonly begun?: BegunAgent | undefined;
  /** Whether its program was replaced since. */
  isOutdated(): boolean;
}

/** Starts the agent in the scope's sandbox and opens its conversation. What was started is closed with the scope. */
export async function startAgent(options: StartAgentOptions, scope: StartScope): Promise<Agent> {
  const { profile, versions, launch, limits, isOutdated } = options;
  let close = () => Promise.resolve();
  scope.defer(() => close());
  const { sandbox, signal, log } = scope;
  const onSpawned = (spawned: Parameters<typeof closeAgent>[0]) => {
    close = () => closeAgent(spawned, false);
    scope.explain?.(() => whyLate(spawned));
  };
  if (launch.workspaceFiles.length > 0) await sandbox.writeFiles(launch.workspaceFiles);
  const { begun = await beginAgent(options, { sandbox, signal, log, onSpawned }) } = options;
  const started = { profile, versions, limits, isOutdated, isAhead: options.begun !== undefined, ...begun };
  onSpawned(started);
  const agent = await orExplained(started, launch, () =>
    unlessStopped(signal, profile, () => openConversation(started, launch, scope)),
  );
  close = () => agent.close();
  return agent;
}
