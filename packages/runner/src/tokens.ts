import type { KeyObject } from "node:crypto";
import type { AcceptedPlan } from "@ambit/core";
import type { RunRequest } from "@ambit/core/contract";
import type { Log, RunObserver } from "@ambit/core/plugin";
import type { InjectionToken } from "tsyringe";
import type { FairSlots } from "./lifetime/fair-slots.js";
import type { OwnedScope } from "./lifetime/scope.js";
import type { RunLimits } from "./limits.js";
import type {
  CredentialRefreshService,
  HideSecrets,
  PermissionCeiling,
  PreviewService,
  WorkspaceService,
} from "./operator.js";

/** A run that may start. */
export interface PlannedRun {
  readonly id: string;
  /** Names it among the runs of all callers. */
  readonly key: string;
  readonly request: RunRequest;
  readonly plan: AcceptedPlan;
  /** Every credential of the request: never log or return it. */
  readonly secrets: readonly string[];
}

/** Tokens of injected values that aren't instances of a class of ours. */
export const tokens = {
  // The runner's values, registered once.
  log: token<Log>("log"),
  limits: token<RunLimits>("limits"),
  permissionCeiling: token<PermissionCeiling>("permissionCeiling"),
  hideSecrets: token<HideSecrets>("hideSecrets"),
  credentialRefresh: token<CredentialRefreshService>("credentialRefresh"),
  /**
   * The key of the ids under which calls are announced that wait for a user. Runners that resume each other's
   * conversations have the same. Asked for when it is first needed.
   */
  interactionKey: token<() => Promise<KeyObject>>("interactionKey"),
  /** Whether callers send the whole conversation in each request. */
  wholeHistory: token<boolean>("wholeHistory"),
  workspaces: token<WorkspaceService>("workspaces"),
  previews: token<PreviewService>("previews"),
  /** Whether several tenants share this runner. */
  hasTenants: token<boolean>("hasTenants"),
  observers: token<readonly RunObserver[]>("observers"),
  /** The slots for tool calls that are executed. */
  callSlots: token<FairSlots>("callSlots"),
  // A run's values, registered in the run's child container.
  run: token<PlannedRun>("run"),
  runId: token<string>("runId"),
  request: token<RunRequest>("request"),
  plan: token<AcceptedPlan>("plan"),
  /** Every credential of the request: never log or return it. */
  secrets: token<readonly string[]>("secrets"),
  /** Whether its result includes its events. */
  keepsEvents: token<boolean>("keepsEvents"),
  /** Owns the lifetimes of all that the run opens. */
  scope: token<OwnedScope>("scope"),
} as const;

/** A unique symbol: no other token is equal to it. */
export function token<Value>(name: string): InjectionToken<Value> {
  return Symbol(`ambit.runner.${name}`);
}
