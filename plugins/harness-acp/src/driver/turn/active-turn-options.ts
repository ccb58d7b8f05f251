import type { Log } from "@ambit/core/plugin";
import type { Profile } from "../../profiles/profile.js";
import type { DriverLimits } from "../limits.js";
import type { AcpConnection } from "../wire/connection.js";
import type { LateMessages } from "./late-messages.js";
import type { PromptAbilities } from "./prompt-content.js";

export interface ActiveTurnOptions {
  readonly profile: Profile;
  readonly connection: AcpConnection;
  readonly sessionId: string;
  readonly servers: readonly string[];
  readonly abilities: PromptAbilities;
  readonly limits: DriverLimits;
  /** Whether the agent listed every server's tools: no agent reports that it couldn't reach one. */
  toolsListed(): boolean;
  /** US dollars that earlier turns of the conversation cost. */
  readonly costBefore: number;
  readonly log: Log;
  /** What the agent sends outside of its turns. */
  readonly late: LateMessages;
  /** Called once, with the cost of the conversation so far, and whether the agent knows that the turn is over. */
  over(state: { readonly cost: number; readonly answered: boolean }): void;
}

/** Why the driver ends a turn. */
export type Stop =
  | { readonly why: "cancelled" | "paused" }
  | { readonly why: "failed"; readonly error: Error };
