import type { Command, FileEntry, JsonObject } from "@ambit/core/plugin";
import type { ObeyedPath, SessionSettings } from "../../profiles/profile.js";

/** Everything that is decided before the agent's process exists. */
export interface AgentLaunchPlan {
  readonly argv: Command["argv"];
  /** What the agent would obey in its workspace. If one is there, `argv` exits with `obeyedExit` and its index. */
  readonly obeyed: readonly ObeyedPath[];
  /** The complete environment: nothing is inherited from the runner. */
  readonly env: Readonly<Record<string, string>>;
  /** Files of its home, which are written before the start. */
  readonly files: readonly FileEntry[];
  /** Files of its workspace, which it reads with its conversation. */
  readonly workspaceFiles: readonly FileEntry[];
  /** The chosen model; empty for an agent without one. */
  readonly model: string;
  /** Whether the model must be one that the agent lists. */
  readonly requiresListed: boolean;
  /** `_meta` of the session's requests; empty for none. */
  readonly sessionMeta: JsonObject;
  readonly session: SessionSettings;
  /** The value of the session's option for the reasoning effort. Default: the agent's own. */
  readonly effort?: string;
}
