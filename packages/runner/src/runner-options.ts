import type { KeyObject } from "node:crypto";
import type { Registry } from "@ambit/core";
import type { Log } from "@ambit/core/plugin";
import type { AdmissionRules } from "./admission/admission.js";
import type { RunLimits } from "./limits.js";
import type { HideSecrets } from "./operator.js";

export interface RunnerOptions extends AdmissionRules {
  readonly registry: Registry;
  readonly limits: RunLimits;
  /**
   * The key of the ids under which calls are announced that wait for a user: runners that share it resume each other's
   * conversations. Called when it is first needed; never rejects.
   */
  readonly interactionKey: () => Promise<KeyObject>;
  readonly log: Log;
  /** The share of memory that agents may be started ahead in, 0 to 1. Default: what the host or a control group has left. */
  readonly freeMemory?: () => number;
  /** Called with the credentials of each run and session. Default: the log isn't redacted. */
  readonly hideSecrets?: HideSecrets;
}
