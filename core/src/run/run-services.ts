import type { Log } from "../plugin/index.js";
import type { RunLimits } from "./limits.js";
import type { PermissionCeiling } from "./permission/permission.js";
import type { Sessions } from "./sessions.js";

/** What a run needs that isn't in its request. */
export interface RunServices {
  readonly sessions: Sessions;
  readonly limits: RunLimits;
  readonly permissionCeiling: PermissionCeiling;
  readonly log: Log;
}

export interface RunOptions {
  /** Whether the result carries the events; a stream's doesn't, they came before it. */
  readonly keepsEvents: boolean;
}
