import { z } from "zod";
import type { KubernetesConfig } from "./config.js";
import type { Cluster } from "./pod/cluster.js";

const ruleSchema = z.object({
  verbs: z.array(z.string()).catch([]),
  apiGroups: z.array(z.string()).catch([]),
  resources: z.array(z.string()).catch([]),
  resourceNames: z.array(z.string()).catch([]),
});
const reviewSchema = z.object({
  status: z.object({
    resourceRules: z.array(ruleSchema).catch([]),
    incomplete: z.boolean().catch(false),
  }),
});
export type Rule = z.output<typeof ruleSchema>;

interface Right {
  readonly group: string;
  readonly resource: string;
  readonly verbs: readonly string[];
}

/** All that the plugin asks for, in the namespace of the sandboxes: `deploy/chart/files/rights.yaml` grants it. */
export const neededRights: readonly Right[] = [
  { group: "", resource: "pods", verbs: ["create", "get", "delete", "list", "watch"] },
  // An older server checks `get` for a WebSocket, a newer one `create` too.
  { group: "", resource: "pods/exec", verbs: ["create", "get"] },
  { group: "", resource: "events", verbs: ["list"] },
  { group: "networking.k8s.io", resource: "networkpolicies", verbs: ["list"] },
  { group: "coordination.k8s.io", resource: "leases", verbs: ["create", "get", "update", "delete", "list"] },
];

/** For the policies of a session and its gate: `deploy/chart/files/gate-rights.yaml` grants it. */
const gateRights: Right = {
  group: "networking.k8s.io",
  resource: "networkpolicies",
  verbs: ["create", "delete"],
};

/** Rights with which a stolen token does more than end sandboxes. */
const excessive: readonly Right[] = [
  { group: "", resource: "secrets", verbs: ["get", "list", "watch"] },
  { group: "", resource: "nodes/proxy", verbs: ["get", "create"] },
  { group: "", resource: "serviceaccounts/token", verbs: ["create"] },
  { group: "", resource: "pods/ephemeralcontainers", verbs: ["update", "patch"] },
  { group: "networking.k8s.io", resource: "networkpolicies", verbs: ["create", "update", "patch", "delete"] },
  { group: "rbac.authorization.k8s.io", resource: "rolebindings", verbs: ["create", "update", "patch"] },
  { group: "rbac.authorization.k8s.io", resource: "roles", verbs: ["escalate", "update", "patch"] },
];

const has = (list: readonly string[], one: string) => list.includes("*") || list.includes(one);

const grants = (rules: readonly Rule[], { group, resource }: Right, verb: string) =>
  rules.some(
    (rule) =>
      rule.resourceNames.length === 0 &&
      has(rule.apiGroups, group) &&
      has(rule.resources, resource) &&
      has(rule.verbs, verb),
  );

export interface RightsReview {
  /** Such as `pods: create`. */
  readonly missing: readonly string[];
  readonly tooMany: readonly string[];
}

/** What an account may do in a namespace, next to what it needs. Pure. */
export function reviewRights(rules: readonly Rule[], egress: KubernetesConfig["egress"]): RightsReview {
  const isWhole = rules.some(({ verbs, apiGroups, resources }) =>
    [verbs, apiGroups, resources].every((list) => list.includes("*")),
  );
  const named = (rights: readonly Right[], isGranted: boolean) =>
    rights.flatMap((right) => {
      const verbs = right.verbs.filter((verb) => grants(rules, right, verb) === isGranted);
      return verbs.length === 0 ? [] : [`${right.resource}: ${verbs.join(", ")}`];
    });
  const needed = egress === "gate" ? [...neededRights, gateRights] : neededRights;
  const isNeeded = ({ resource }: Right, verb: string) =>
    needed.some((right) => right.resource === resource && right.verbs.includes(verb));
  const tooMuch = excessive.map((right) => ({
    ...right,
    verbs: right.verbs.filter((verb) => !isNeeded(right, verb)),
  }));
  return { missing: named(needed, false), tooMany: isWhole ? ["everything"] : named(tooMuch, true) };
}

/** Asks the server what the runner's account may do. Every account may ask that. */
export async function rightsIn(
  cluster: Cluster,
  egress: KubernetesConfig["egress"],
  signal: AbortSignal,
): Promise<RightsReview | undefined> {
  const review = {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SelfSubjectRulesReview",
    spec: { namespace: cluster.namespace },
  };
  const path = "apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
  const { status } = await cluster.api.ask({ method: "POST", path, body: review, signal }, reviewSchema);
  const rightsReview = reviewRights(status.resourceRules, egress);
  // An authorizer that can't list its rules, such as a webhook of a cloud: what is missing isn't known.
  return status.incomplete ? { ...rightsReview, missing: [] } : rightsReview;
}
