import { randomUUID } from "node:crypto";
import {
  type AcceptedPlan,
  callPlugin,
  inOffer,
  type OwnSandbox,
  ofBoundary,
  ofOffer,
  pluginReturns,
} from "@ambit/core";
import {
  type ConnectionDecision,
  type Log,
  type Sandbox,
  type SandboxFailed,
  type SandboxSpec,
  unlessAborted,
} from "@ambit/core/plugin";
import type { OwnedScope } from "../lifetime/scope.js";
import { requireOpened } from "./session.js";

interface OpenOptions {
  readonly plan: AcceptedPlan;
  readonly scope: OwnedScope;
  readonly log: Log;
  /** Called for every connection that reaches the boundary's proxy. */
  readonly decided: (decision: ConnectionDecision) => void;
}

/**
 * Opens a sandbox for a program of Ambit's own, of the backend that the plan names. It ends with the run if it isn't closed
 * before.
 * @throws SandboxFailed, PluginBrokeContract; the run's reason
 */
export async function openOwnSandbox(
  { subject, boundary, secrets, layer }: OwnSandbox & Pick<SandboxSpec, "layer">,
  { plan, scope, log, decided }: OpenOptions,
): Promise<Sandbox> {
  const planned = plan.own.get(subject);
  if (planned === undefined) throw new TypeError(`the plan has no sandbox for ${subject}`);
  const { actor } = planned;
  const required = ofBoundary(boundary).map(({ capability }) => capability);
  const spec = {
    id: randomUUID(),
    boundary,
    upstreamProxy: plan.upstreamProxy,
    required,
    requiredPaths: [],
    onDecision: (decision: ConnectionDecision) => {
      const { target, allowed, reason } = decision;
      if (!allowed)
        log.info({ subject, target, reason }, "a sandbox of Ambit's own was refused a connection");
      decided(decision);
    },
    onFailure: (failure: SandboxFailed) => scope.abort(failure),
    secrets: secrets.length > 0 ? secrets : undefined,
    layer,
    log,
  };
  return unlessAborted(scope.signal, async () => {
    const opened = await callPlugin(actor, "open", pluginReturns.sandbox, async () => {
      const sandbox = await actor.open(spec, scope);
      if (sandbox instanceof Object) scope.defer(() => inOffer(actor, () => sandbox.close()));
      return sandbox;
    });
    requireOpened(actor, opened, true, secrets);
    return ofOffer(actor, opened);
  });
}
