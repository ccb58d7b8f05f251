import type { Log } from "@ambit/core/plugin";
import type { RunLimits } from "./limits.js";
import type { AskingServices } from "./permission/interaction/asking.js";
import type { PermissionCeiling } from "./permission/permission.js";
import type { Sessions } from "./session/sessions.js";
import type { ArgumentsChecker } from "./tools/arguments/checker.js";
import type { FairSlots } from "./tools/fair-slots.js";

/** What all runs share, each in its turn. */
export interface SharedWork {
  readonly argumentsChecker: ArgumentsChecker;
  /** One for each tool call that is executed. */
  readonly callSlots: FairSlots;
}

/** What a run needs that isn't in its request. */
export interface RunServices extends AskingServices {
  readonly shared: SharedWork;
  readonly sessions: Sessions;
  readonly limits: RunLimits;
  readonly permissionCeiling: PermissionCeiling;
  readonly log: Log;
}

export interface RunOptions {
  /** Names the run where the request doesn't. Default: a random id. */
  readonly runId?: string;
  /** Whether the result carries the events; a stream's doesn't, they came before it. */
  readonly keepsEvents: boolean;
}
