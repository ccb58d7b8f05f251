import type { KeyObject } from "node:crypto";
import type { AcceptedPlan } from "@ambit/core";
import type { RunRequest, Warning } from "@ambit/core/contract";
import type { Log, RunObserver, RunToolPolicy, ToolPolicy } from "@ambit/core/plugin";
import type { InjectionToken } from "tsyringe";
import type { FairSlots } from "./lifetime/fair-shares.js";
import type { OwnedScope } from "./lifetime/scope.js";
import type { RunLimits } from "./limits.js";
import type {
  CredentialRefreshService,
  HideSecrets,
  PermissionCeiling,
  PreviewService,
  WorkspaceService,
} from "./operator.js";

/** A loaded tool policy that decides on calls of this run. */
export interface PlannedToolPolicy {
  readonly offer: ToolPolicy;
  readonly policy: RunToolPolicy;
}

/** A run that may start, as its collaborators know it. */
export interface PlannedRun {
  readonly id: string;
  /** Names it among the runs of all callers. */
  readonly key: string;
  readonly request: RunRequest;
  readonly plan: AcceptedPlan;
  /** What decides on calls of the request's own tools, besides their permissions. */
  readonly toolPolicies: readonly PlannedToolPolicy[];
  /** Every credential of the request: never log or return it. */
  readonly secrets: readonly string[];
  /** Parts of the request that have no effect, or another one than it seems. */
  readonly warnings: readonly Warning[];
  /** Whether its result includes its events. */
  readonly keepsEvents: boolean;
}

/** What the operator gives all runs of a runner. */
export interface RunnerServices {
  readonly workspaces: WorkspaceService;
  readonly previews: PreviewService;
  readonly credentialRefresh: CredentialRefreshService;
  readonly hideSecrets: HideSecrets;
  readonly observers: readonly RunObserver[];
  /**
   * The key of the ids under which calls are announced that wait for a user. Runners that resume each other's
   * conversations have the same key. Called when it is first needed.
   */
  readonly interactionKey: () => Promise<KeyObject>;
  /** Whether callers send the whole conversation in each request. */
  readonly wholeHistory: boolean;
  /** Whether several tenants share this runner. */
  readonly hasTenants: boolean;
}

/** Tokens of injected values that aren't instances of a class of ours. */
export const tokens = {
  // The runner's values, registered once.
  log: token<Log>("log"),
  limits: token<RunLimits>("limits"),
  permissionCeiling: token<PermissionCeiling>("permissionCeiling"),
  services: token<RunnerServices>("services"),
  /** The slots for tool calls that are executed. */
  callSlots: token<FairSlots>("callSlots"),
  // A run's values, registered in the run's child container.
  run: token<PlannedRun>("run"),
  /** Owns the lifetimes of all that the run opens. */
  scope: token<OwnedScope>("scope"),
} as const;

/** A unique symbol: no other token is equal to it. */
function token<Value>(name: string): InjectionToken<Value> {
  return Symbol(`ambit.runner.${name}`);
}
