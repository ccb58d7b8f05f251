import { type KeyObject, randomUUID } from "node:crypto";
import type { Registry } from "@ambit/core";
import { runKey } from "@ambit/core/contract";
import type { Log, PrewarmClaim } from "@ambit/core/plugin";
import { type DependencyContainer, container as global, Lifecycle } from "tsyringe";
import type { AdmissionRules, AdmittedRun } from "./admission/admission.js";
import { type RunOptions, strictestCeiling } from "./admission/caller-rules.js";
import { Ask } from "./call/ask/ask.js";
import { RunnersLedger } from "./call/ask/remembered-answers.js";
import { CallPermissions } from "./call/permission/permissions.js";
import { ApprovedCalls } from "./call/reports/approved-calls.js";
import { CallEvents } from "./call/reports/call-events.js";
import { Calls } from "./call/reports/calls.js";
import { RunCalls } from "./call/run-calls.js";
import { ArgumentsChecker } from "./call/tools/arguments/checker.js";
import { RunTools } from "./call/tools/run-tools.js";
import { RunLogger } from "./events/observation.js";
import { notifyPrewarmed } from "./events/observers.js";
import { RunEvents } from "./events/run-events.js";
import { Deadlines, Pause, RightToAct } from "./lifetime/deadlines.js";
import { FairSlots } from "./lifetime/fair-slots.js";
import { OwnedScope } from "./lifetime/scope.js";
import type { RunLimits } from "./limits.js";
import { ModelCalls } from "./model/model-calls.js";
import { SessionSpending } from "./model/spending.js";
import { type HideSecrets, noCredentialRefresh, noPreviews, noWorkspaces } from "./operator.js";
import { AgentTurn } from "./run/agent-turn.js";
import { Run } from "./run/run.js";
import { WorkspaceFilling } from "./run/workspace-filling.js";
import { WorkspaceOutputs } from "./run/workspace-outputs.js";
import { AgentStarter } from "./session/agent/start-agent.js";
import { AgentPool } from "./session/pool/agent-pool.js";
import { Sessions } from "./session/sessions.js";
import { tokens } from "./tokens.js";

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

/** What a run does, from the ground up. Each run has one instance of each, in its own container. */
export const runClasses = [
  RunEvents,
  RunTools,
  CallPermissions,
  CallEvents,
  Ask,
  RunCalls,
  ModelCalls,
  AgentStarter,
  WorkspaceFilling,
  WorkspaceOutputs,
  AgentTurn,
  Run,
];

/**
 * What all runs share: values, and classes that are resolved here. One that a run's container resolved first would be
 * disposed with that run.
 */
export function composeRunner(options: RunnerOptions): DependencyContainer {
  const { log, permissionCeiling, interactionKey, hideSecrets = () => () => {} } = options;
  const { observers } = options.registry;
  const limits = withShares(options);
  const { calls: atOnce, callsPerRun: perOwner, openCalls: waiting } = limits;
  const onClaim = (claim: PrewarmClaim) => notifyPrewarmed(observers, claim, log);
  // A separate container, so that two runners in one process share nothing.
  const root = global.createChildContainer();
  root.registerInstance(tokens.log, log);
  root.registerInstance(tokens.limits, limits);
  root.registerInstance(tokens.permissionCeiling, permissionCeiling);
  root.registerInstance(tokens.services, {
    workspaces: options.workspaces ?? noWorkspaces,
    previews: options.previews ?? noPreviews,
    credentialRefresh: options.credentialRefresh ?? noCredentialRefresh,
    hideSecrets,
    observers,
    interactionKey,
    wholeHistory: options.contract?.wholeHistory ?? false,
    hasTenants: options.hasTenants ?? false,
  });
  root.registerInstance(tokens.callSlots, new FairSlots({ atOnce, perOwner, waiting }));
  root.registerInstance(ArgumentsChecker, new ArgumentsChecker(limits.argumentsMs, log));
  root.registerInstance(RunnersLedger, new RunnersLedger());
  root.registerInstance(SessionSpending, new SessionSpending());
  root.registerInstance(AgentPool, new AgentPool({ limits, log, onClaim }));
  root.registerSingleton(Sessions);
  root.resolve(Sessions);
  for (const runClass of runClasses) {
    root.register<unknown>(runClass, { useClass: runClass }, { lifecycle: Lifecycle.ContainerScoped });
  }
  return root;
}

/** With tenants, none may keep all of the sessions. */
function withShares({ limits, hasTenants = false }: RunnerOptions): RunLimits {
  const { sessions, sessionsPerProject = hasTenants ? Math.ceil(sessions / 2) : undefined } = limits;
  return sessionsPerProject === undefined ? limits : { ...limits, sessionsPerProject };
}

/** A run's container: its values. `runClasses` are constructed from them when it resolves `Run`, and disposed with it. */
export function composeRun(
  root: DependencyContainer,
  admitted: AdmittedRun,
  { runId, keepsEvents, caller }: RunOptions,
): DependencyContainer {
  const { request } = admitted;
  const limits = root.resolve(tokens.limits);
  const id = request.runId ?? runId ?? randomUUID();
  const log = new RunLogger(root.resolve(tokens.log), id, request);
  const scope = new OwnedScope(log, limits.closeMs);
  const ceiling = strictestCeiling(root.resolve(tokens.permissionCeiling), caller?.permissionCeiling ?? []);
  const run = root.createChildContainer();
  // What it is to do, and for whom.
  run.registerInstance(tokens.run, { ...admitted, id, key: runKey(id, caller?.project), keepsEvents });
  run.registerInstance(tokens.permissionCeiling, ceiling);
  // How long it may act, and what it leaves behind.
  run.registerInstance(tokens.scope, scope);
  run.registerInstance(Deadlines, new Deadlines(scope, limits));
  run.registerInstance(RightToAct, new RightToAct());
  run.registerInstance(tokens.log, log);
  run.registerInstance(RunLogger, log);
  // What its calls have come to, and whether they wait for the user.
  run.registerInstance(Calls, new Calls(limits));
  run.registerInstance(ApprovedCalls, new ApprovedCalls());
  run.registerInstance(Pause, new Pause());
  return run;
}
