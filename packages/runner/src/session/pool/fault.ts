import type { PreparedAgent, SandboxContents } from "@ambit/core/plugin";
import type { CountedDecision } from "../decided-between.js";

/** What was observed of an agent between its start and the run that asks for it. */
export interface Observed {
  readonly hasEnded: boolean;
  readonly hasFailed: boolean;
  /** Connections that it tried to make. */
  readonly decided: readonly CountedDecision[];
  readonly askedModel: boolean;
  readonly found: SandboxContents;
  readonly workspace: string;
}

/** Why a run may not have the agent; undefined if it is as it was started. Pure. */
export function faultOf(agent: Pick<PreparedAgent, "fault">, observed: Observed): string | undefined {
  const { hasEnded, hasFailed, decided, askedModel, found, workspace } = observed;
  if (hasEnded) return "it has ended";
  if (hasFailed) return "its sandbox has failed";
  const [connection] = decided;
  if (connection !== undefined) return `it tried to connect to ${connection.decision.target}`;
  if (askedModel) return "it sent a request to its model";
  const written = found.files.find((path) => path.startsWith(`${workspace}/`));
  if (written !== undefined) return `it wrote ${written} in its workspace`;
  return agent.fault(found);
}
