import { randomUUID } from "node:crypto";
import { runKey } from "@ambit/core/contract";
import type { PrewarmClaim } from "@ambit/core/plugin";
import { type DependencyContainer, container as global, Lifecycle } from "tsyringe";
import type { AdmittedRun } from "./admission/admission.js";
import { strictestCeiling } from "./admission/caller-rules.js";
import type { RunOptions } from "./admission/run-options.js";
import { Ask } from "./call/ask/ask.js";
import { Elicitation } from "./call/ask/elicitation.js";
import { RunnersLedger } from "./call/ask/remembered-answers.js";
import { Gatekeeper } from "./call/gatekeeper.js";
import { CallPermissions } from "./call/permission/permissions.js";
import { ApprovedCalls } from "./call/reports/approved-calls.js";
import { CallEvents } from "./call/reports/call-events.js";
import { Calls } from "./call/reports/calls.js";
import { Settling } from "./call/reports/settling.js";
import { RunCalls } from "./call/run-calls.js";
import { ArgumentsChecker } from "./call/tools/arguments/checker.js";
import { ToolArguments } from "./call/tools/arguments/tool-arguments.js";
import { ToolExecution } from "./call/tools/execute.js";
import { GatewayTools } from "./call/tools/gateway/gateway-tools.js";
import { RequestTools } from "./call/tools/request-tools.js";
import { ResultSecrets } from "./call/tools/result-secrets.js";
import { RunTools } from "./call/tools/run-tools.js";
import { Observation } from "./events/observation.js";
import { notifyPrewarmed } from "./events/observers.js";
import { RunEvents } from "./events/run-events.js";
import { RunLogger } from "./events/run-logger.js";
import { Warnings } from "./events/warnings.js";
import { Deadlines } from "./lifetime/deadlines.js";
import { FairSlots } from "./lifetime/fair-slots.js";
import { Pause } from "./lifetime/pause.js";
import { RightToAct } from "./lifetime/right-to-act.js";
import { OwnedScope } from "./lifetime/scope.js";
import type { RunLimits } from "./limits.js";
import { RunBudget } from "./model/budget.js";
import { ModelCalls } from "./model/model-calls.js";
import { SessionSpending } from "./model/session-spending.js";
import { noCredentialRefresh, noPreviews, noWorkspaces } from "./operator.js";
import { Fork } from "./run/fork.js";
import { Outputs } from "./run/outputs.js";
import { Ports } from "./run/ports.js";
import { roles } from "./run/roles.js";
import { Run } from "./run/run.js";
import { TurnRunner } from "./run/turn-runner.js";
import type { RunnerOptions } from "./runner-options.js";
import { Publisher } from "./session/agent/publish.js";
import { AgentStarter } from "./session/agent/start-agent.js";
import { ModelRoutes } from "./session/model-routes.js";
import { AgentPool } from "./session/pool/agent-pool.js";
import { Sessions } from "./session/sessions.js";
import { tokens } from "./tokens.js";

/** One instance per run. A class that is missing here would be constructed for each injection. */
export const runClasses = [
  RightToAct,
  Observation,
  RunEvents,
  RunTools,
  GatewayTools,
  ToolArguments,
  ResultSecrets,
  ToolExecution,
  RequestTools,
  CallPermissions,
  Pause,
  Calls,
  ApprovedCalls,
  Settling,
  CallEvents,
  Ask,
  Elicitation,
  Gatekeeper,
  RunCalls,
  ModelRoutes,
  Publisher,
  AgentStarter,
  RunBudget,
  ModelCalls,
  TurnRunner,
  Outputs,
  Fork,
  Ports,
  Run,
];

/**
 * What all runs share: instances, or classes that are resolved here. One that a run's container resolved first would be
 * disposed with that run.
 */
export function rootContainer(options: RunnerOptions): DependencyContainer {
  const { log, permissionCeiling, interactionKey, hideSecrets = () => () => {} } = options;
  const limits = withShares(options);
  // A separate container, so that two runners in one process share nothing.
  const root = global.createChildContainer();
  root.registerInstance(tokens.log, log);
  root.registerInstance(tokens.limits, limits);
  root.registerInstance(tokens.permissionCeiling, permissionCeiling);
  root.registerInstance(tokens.interactionKey, interactionKey);
  root.registerInstance(tokens.wholeHistory, options.contract?.wholeHistory ?? false);
  root.registerInstance(tokens.workspaces, options.workspaces ?? noWorkspaces);
  root.registerInstance(tokens.previews, options.previews ?? noPreviews);
  root.registerInstance(tokens.credentialRefresh, options.credentialRefresh ?? noCredentialRefresh);
  root.registerInstance(tokens.hasTenants, options.hasTenants ?? false);
  root.registerInstance(tokens.observers, options.registry.observers);
  root.registerInstance(tokens.hideSecrets, hideSecrets);
  const { calls: atOnce, callsPerRun: perOwner, openCalls: waiting } = limits;
  root.registerInstance(tokens.callSlots, new FairSlots({ atOnce, perOwner, waiting }));
  root.registerInstance(ArgumentsChecker, new ArgumentsChecker(limits.argumentsMs, log));
  root.registerInstance(RunnersLedger, new RunnersLedger());
  root.registerInstance(SessionSpending, new SessionSpending());
  const { observers } = options.registry;
  const onClaim = (claim: PrewarmClaim) => notifyPrewarmed(observers, claim, log);
  root.registerInstance(AgentPool, new AgentPool({ limits, log, onClaim }));
  root.registerSingleton(Sessions);
  root.resolve(Sessions);
  for (const one of runClasses) {
    root.register<unknown>(one, { useClass: one }, { lifecycle: Lifecycle.ContainerScoped });
  }
  root.register(roles.deadlines, { useToken: Deadlines });
  root.register(roles.right, { useToken: RightToAct });
  root.register(roles.events, { useToken: RunEvents });
  root.register(roles.sessions, { useToken: Sessions });
  root.register(roles.agents, { useToken: AgentStarter });
  root.register(roles.calls, { useToken: RunCalls });
  root.register(roles.turn, { useToken: TurnRunner });
  return root;
}

/** With tenants, none may keep all of the sessions. */
function withShares({ limits, hasTenants = false }: RunnerOptions): RunLimits {
  const { sessions, sessionsPerProject = hasTenants ? Math.ceil(sessions / 2) : undefined } = limits;
  return sessionsPerProject === undefined ? limits : { ...limits, sessionsPerProject };
}

/** A run's container. Its `Run` and all collaborators are constructed from it, and disposed with it. */
export function runContainer(
  root: DependencyContainer,
  { request, plan, secrets, warnings }: AdmittedRun,
  options: RunOptions,
): DependencyContainer {
  const run = root.createChildContainer();
  const id = request.runId ?? options.runId ?? randomUUID();
  const key = runKey(id, options.caller?.project);
  run.registerInstance(tokens.run, { id, key, request, plan, secrets });
  run.registerInstance(tokens.runId, id);
  run.registerInstance(tokens.request, request);
  run.registerInstance(tokens.plan, plan);
  run.registerInstance(tokens.secrets, secrets);
  run.registerInstance(tokens.keepsEvents, options.keepsEvents);
  const { caller } = options;
  if (caller !== undefined) {
    const ceiling = strictestCeiling(root.resolve(tokens.permissionCeiling), caller.permissionCeiling);
    run.registerInstance(tokens.permissionCeiling, ceiling);
  }
  const limits = root.resolve(tokens.limits);
  const log = new RunLogger(root.resolve(tokens.log), id, request);
  run.registerInstance(RunLogger, log);
  run.registerInstance(tokens.log, log);
  const scope = new OwnedScope(log, limits.closeMs);
  run.registerInstance(tokens.scope, scope);
  run.registerInstance(Deadlines, new Deadlines(scope, limits));
  run.registerInstance(Warnings, new Warnings(warnings));
  return run;
}
