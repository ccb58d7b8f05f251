import { z } from "zod";

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
  return byLabel && (matchExpressions ?? []).every((one) => holds(one, labels[one.key]));
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
export interface PolicyReview {
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
