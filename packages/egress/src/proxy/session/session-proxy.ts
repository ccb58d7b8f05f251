import { SandboxFailed, type SandboxSpec } from "@ambit/core/plugin";
import type { CredentialBroker } from "../../credentials/broker.js";
import { formatTarget } from "../../target.js";
import type { EgressDecision } from "../gate.js";
import { type EgressProxy, type EgressProxyOptions, openEgressProxy } from "../proxy.js";

export interface SessionProxyOptions {
  readonly spec: Pick<
    SandboxSpec,
    "id" | "boundary" | "upstreamProxy" | "onDecision" | "onFailure" | "isUnclaimed" | "log"
  >;
  readonly listen: EgressProxyOptions["listen"];
  readonly own: EgressProxyOptions["own"];
  readonly lookup?: EgressProxyOptions["lookup"] | undefined;
  readonly checks?: EgressProxyOptions["checks"] | undefined;
  readonly credentials?: CredentialBroker | undefined;
}

/**
 * The egress proxy of one sandbox. It reports every decision to the run, and its own failure ends the run, which must
 * not continue without a record.
 */
export function openSessionProxy({
  spec,
  listen,
  own,
  lookup,
  checks,
  credentials,
}: SessionProxyOptions): Promise<EgressProxy> {
  return openEgressProxy({
    listen,
    policy: spec.boundary.network,
    upstreamProxy: spec.upstreamProxy,
    ...reportsTo(spec),
    own,
    lookup,
    checks,
    credentials,
  });
}

/** How a proxy, wherever it runs, reports to a run. */
export const reportsTo = (spec: SessionProxyOptions["spec"]) => ({
  isUnclaimed: () => spec.isUnclaimed?.() === true,
  onDecision: ({ target, protocol: _, address: __, ...decision }: EgressDecision) =>
    spec.onDecision({ ...decision, target: formatTarget(target) }),
  onFault: (cause: unknown) => {
    spec.log.error({ sandbox: spec.id, fault: String(cause) }, "the boundary's proxy failed");
    spec.onFailure?.(new SandboxFailed("The boundary's proxy failed: the run has no network.", { cause }));
  },
});
