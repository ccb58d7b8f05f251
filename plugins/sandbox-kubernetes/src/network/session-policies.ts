import { isDeepStrictEqual } from "node:util";
import type { Ownership } from "@ambit/backend-kit";
import { SandboxFailed } from "@ambit/core/plugin";
import { z } from "zod";
import { asSandboxFailed, isGone } from "../api/failure.js";
import type { Cluster } from "../pod/cluster.js";
import { gatePort } from "../pod/gate-manifest.js";
import { gateName, gateOf, gateOfSandbox, podLabels, sandboxOfGate } from "../pod/labels.js";
import type { LeaseReference } from "../pod/placement.js";
import { type Policy, policySchema } from "./policies.js";

const group = "apis/networking.k8s.io/v1";

/** What a session's policies open: the way from its sandbox to its gate, and the gate's own. */
interface AskedPolicy {
  readonly name: string;
  readonly spec: object;
}

/**
 * Two policies, since one selects pods by one set of labels: the sandbox reaches one port of its gate, and the gate is reached
 * by its sandbox alone. What the gate reaches is what its own rules allow. Pure.
 */
export function sessionPolicies(gate: string): readonly AskedPolicy[] {
  const ofSandbox = { podSelector: { matchLabels: { ...sandboxOfGate(gate) } } };
  const ofGate = { podSelector: { matchLabels: { ...gateOfSandbox(gate) } } };
  const ports = [{ protocol: "TCP", port: gatePort }];
  return [
    {
      name: `${gate}-way`,
      spec: { ...ofSandbox, policyTypes: ["Egress"], egress: [{ to: [ofGate], ports }] },
    },
    {
      name: gate,
      spec: {
        ...ofGate,
        policyTypes: ["Ingress", "Egress"],
        ingress: [{ from: [ofSandbox], ports }],
        egress: [{}],
      },
    },
  ];
}

/** Whether it is exactly the policy of some session's gate, and so opens nothing else, no matter who made it. Pure. */
export function isSessionPolicy({ metadata, spec }: Policy): boolean {
  const gate = gateOf(spec.podSelector.matchLabels ?? {});
  return (
    gate !== undefined &&
    sessionPolicies(gate).some((asked) =>
      isDeepStrictEqual(spec, policySchema.parse({ metadata, spec: asked.spec }).spec),
    )
  );
}

const storedSchema = z.looseObject({
  metadata: z.looseObject({ name: z.string(), uid: z.string() }),
  spec: z.unknown(),
});

/** Policies of one session, as the cluster has stored them. They end with the gate's pod, whatever becomes of the runner. */
export class SessionPolicies {
  readonly #cluster: Cluster;
  readonly #made = new Map<string, string>();

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /** @param gatePod the pod that they end with. @throws SandboxFailed */
  async create(owner: Ownership, gatePod: LeaseReference, signal: AbortSignal): Promise<void> {
    const labels = podLabels(owner);
    const asked = sessionPolicies(gateName(owner));
    const ownerReferences = [
      { apiVersion: "v1", kind: "Pod", ...gatePod, controller: false, blockOwnerDeletion: false },
    ];
    await Promise.all(
      asked.map(async ({ name, spec }) => {
        const body = {
          apiVersion: "networking.k8s.io/v1",
          kind: "NetworkPolicy",
          metadata: { name, labels, ownerReferences },
          spec,
        };
        const path = this.#cluster.path("networkpolicies", undefined, group);
        const stored = await this.#cluster.api
          .ask({ method: "POST", path, body, signal }, storedSchema)
          .catch((error: unknown) => {
            signal.throwIfAborted();
            throw asSandboxFailed(error, "create the NetworkPolicy of a session's gate");
          });
        this.#made.set(name, stored.metadata.uid);
        if (!isDeepStrictEqual(stored.spec, JSON.parse(JSON.stringify(spec))))
          throw new SandboxFailed(
            `The cluster changed the NetworkPolicy ${name}: exempt the namespace from the webhook or policy that changes policies`,
          );
      }),
    );
  }

  /** Those of the namespace that aren't this session's. */
  othersAmong(policies: readonly Policy[]): readonly Policy[] {
    return policies.filter(({ metadata: { name, uid } }) => this.#made.get(name) !== uid || uid === "");
  }

  /** @throws SandboxFailed where one couldn't be deleted: it then ends with the gate's pod. */
  async delete(): Promise<void> {
    await Promise.all(
      [...this.#made].map(async ([name, uid]) => {
        const path = this.#cluster.path("networkpolicies", name, group);
        const body = { apiVersion: "v1", kind: "DeleteOptions", preconditions: { uid } };
        await this.#cluster.api.ask({ method: "DELETE", path, body }, z.unknown()).catch((error: unknown) => {
          if (!isGone(error)) throw asSandboxFailed(error, `delete the NetworkPolicy ${name}`);
        });
        this.#made.delete(name);
      }),
    );
  }
}

export const policiesIn = async (cluster: Cluster, signal?: AbortSignal): Promise<readonly Policy[]> => {
  const path = cluster.path("networkpolicies", undefined, group);
  return (await cluster.api.ask({ path, signal }, z.object({ items: z.array(policySchema) }))).items;
};
