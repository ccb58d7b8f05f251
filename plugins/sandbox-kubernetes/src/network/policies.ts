import { isDeepStrictEqual } from "node:util";
import type { DialTarget, Ownership } from "@ambit/backend-kit";
import { SandboxFailed } from "@ambit/core/plugin";
import { z } from "zod";
import { asSandboxFailed, isGone } from "../api/server.js";
import type { Cluster } from "../pod/cluster.js";
import {
  gateName,
  gateOf,
  gateOfSandbox,
  gatePort,
  type LeaseReference,
  podLabels,
  sandboxOfGate,
} from "../pod/manifest.js";

const requirementSchema = z.object({
  key: z.string(),
  operator: z.string(),
  values: z.array(z.string()).nullish(),
});
const selectorSchema = z.object({
  matchLabels: z.record(z.string(), z.string()).nullish(),
  matchExpressions: z.array(requirementSchema).nullish(),
});
export const policySchema = z.object({
  metadata: z.object({ name: z.string(), uid: z.string().catch(""), resourceVersion: z.string().catch("") }),
  spec: z.object({
    // Absent where a server leaves out what is empty: it then selects every pod.
    podSelector: selectorSchema.prefault({}),
    policyTypes: z.array(z.string()).nullish(),
    ingress: z.array(z.unknown()).nullish(),
    egress: z.array(z.unknown()).nullish(),
  }),
});
export type Policy = z.output<typeof policySchema>;
type Labels = Readonly<Record<string, string>>;

/** Whether a selector names a pod with these labels. An operator that isn't known counts as a match. Pure. */
export function selects(
  { matchLabels, matchExpressions }: Policy["spec"]["podSelector"],
  labels: Labels,
): boolean {
  const byLabel = Object.entries(matchLabels ?? {}).every(([key, value]) => labels[key] === value);
  return (
    byLabel && (matchExpressions ?? []).every((requirement) => holds(requirement, labels[requirement.key]))
  );
}

function holds({ operator, values }: z.output<typeof requirementSchema>, value: string | undefined): boolean {
  const isListed = value !== undefined && (values ?? []).includes(value);
  switch (operator) {
    case "In":
      return isListed;
    case "NotIn":
      return !isListed;
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    default:
      return true;
  }
}

/** What the policies of a namespace say about a pod: they add up, so one that allows undoes the others. */
interface PolicyReview {
  /** Whether both directions are closed unless a policy opens them. */
  readonly deniesIngress: boolean;
  readonly deniesEgress: boolean;
  /** Policies that allow something to or from the pod. */
  readonly opening: readonly string[];
}

/** Pure. */
export function reviewPolicies(policies: readonly Policy[], labels: Labels): PolicyReview {
  const selecting = policies.filter(({ spec }) => selects(spec.podSelector, labels));
  const opening = selecting.filter(({ spec }) => opens(spec.ingress) || opens(spec.egress));
  return {
    // Without types, a policy is one of ingress, and of egress if it has such rules.
    deniesIngress: selecting.some(({ spec }) => spec.policyTypes?.includes("Ingress") ?? true),
    deniesEgress: selecting.some(({ spec }) => spec.policyTypes?.includes("Egress") ?? opens(spec.egress)),
    opening: opening.map(({ metadata }) => metadata.name).sort(),
  };
}

const opens = (rules: readonly unknown[] | null | undefined) => (rules ?? []).length > 0;

/** Why the policies don't close a pod's network, with the fix; undefined if they say that they do. Pure. */
export function whyNotClosed(
  { deniesIngress, deniesEgress, opening }: PolicyReview,
  namespace: string,
): { readonly reason: string; readonly fix: string } | undefined {
  if (!deniesIngress || !deniesEgress) {
    const missing = [...(deniesIngress ? [] : ["ingress"]), ...(deniesEgress ? [] : ["egress"])].join(
      " and ",
    );
    return {
      reason: `no NetworkPolicy of the namespace ${namespace} denies its pods ${missing}`,
      fix: `install deploy/chart for the namespace ${namespace}: its templates/sandboxes/network-policy.yaml does`,
    };
  }
  if (opening.length === 0) return undefined;
  return {
    reason: `policies add up, and ${opening.join(", ")} of the namespace ${namespace} allow what others deny`,
    fix: `delete ${opening.map((name) => `networkpolicy/${name}`).join(" ")} from the namespace, or let their selector leave out pods with the label ambit=sandbox`,
  };
}

const maxNamed = 4;

const wordsOf = (targets: readonly DialTarget[]) =>
  targets
    .map(({ host, port, protocol }) => {
      const address = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
      return protocol === "udp" ? `${address} over UDP` : address;
    })
    .join(", ");

export const policyFix =
  'use a network that enforces policies also towards its nodes and over IPv6 (Cilium with its host firewall, Calico with DefaultEndpointToHostAction=Drop), or nodes with user namespaces (hostUsers: "require")';

/** A pod that policies should close reaches something. */
export class NetworkOpen extends SandboxFailed {
  readonly reason: string;
  readonly fix = policyFix;

  constructor(open: readonly DialTarget[], settleMs: number) {
    const others = open.length > maxNamed ? ` and ${open.length - maxNamed} more` : "";
    const reason = `a pod still reaches ${wordsOf(open.slice(0, maxNamed))}${others} after ${settleMs} ms, so the cluster's network doesn't enforce the namespace's NetworkPolicy`;
    super(`The pod's network can't be closed: ${reason}`);
    this.reason = reason;
    this.message = `${this.message}: ${this.fix}`;
  }
}

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
    const policies = sessionPolicies(gateName(owner));
    const ownerReferences = [
      { apiVersion: "v1", kind: "Pod", ...gatePod, controller: false, blockOwnerDeletion: false },
    ];
    await Promise.all(
      policies.map(async ({ name, spec }) => {
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
