import type { Agent, PublishedServer } from "@ambit/core/plugin";
import type { CallRouter } from "../call/run-calls.js";
import type { OwnedScope } from "../lifetime/scope.js";
import type { ModelRouter } from "./model-routes.js";

/**
 * An agent with everything that it was started with. It belongs to the session; a run borrows it, with its tools'
 * endpoints.
 */
export interface StartedAgent {
  readonly agent: Agent;
  readonly servers: readonly PublishedServer[];
  readonly router: CallRouter;
  readonly modelRouter: ModelRouter;
  /** Names of all tools that are published to it now. */
  readonly toolNames: Iterable<string>;
  /** Digest of the settings that the agent was started with: a run with other settings needs another agent. */
  readonly fingerprint: string;
  readonly scope: OwnedScope;
}
