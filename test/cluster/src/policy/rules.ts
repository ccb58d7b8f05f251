import type { Labels, Peer, Pod, Policy, Port, Rule, Selector } from "./objects.js";

export interface State {
  /** Those whose policies are enforced by now. */
  readonly pods: readonly Pod[];
  /** All, since policies name them. */
  readonly everyPod: readonly Pod[];
  readonly policies: readonly Policy[];
  readonly namespaces: ReadonlyMap<string, Labels>;
  /** Pods of these may reach the node itself, whatever their policies say: so do real controllers. */
  readonly nodeIsOpen: (namespace: string) => boolean;
  /** Of these, only connections over TCP are refused. */
  readonly isOnlyTcp?: (namespace: string) => boolean;
  /** Pods of these reach each other, whatever their policies say. */
  readonly neighboursAreOpen?: (namespace: string) => boolean;
}

type Direction = "Egress" | "Ingress";

/** Chains of the node's firewall that belong to the controller. */
export const chains = { forward: "AMBIT-FORWARD", input: "AMBIT-INPUT" } as const;

const replies = "-m conntrack --ctstate ESTABLISHED,RELATED -j RETURN";

/**
 * The rules, for `iptables-restore --noflush`. A pod that at least one policy selects reaches, and is reached by, what
 * one of these policies allows and nothing else: policies add up. Replies are let through.
 */
export function firewall(state: State): string {
  const declared: string[] = Object.values(chains);
  const rules = Object.values(chains).map((chain) => `-A ${chain} ${replies}`);
  const restrict = (chain: string, { namespace }: Pod, direction: Direction, allowed: readonly string[]) => {
    declared.push(chain);
    const refused = state.isOnlyTcp?.(namespace) ? "-p tcp " : "";
    const flag = direction === "Egress" ? "-d" : "-s";
    const neighbours = state.neighboursAreOpen?.(namespace)
      ? state.everyPod.filter((pod) => pod.namespace === namespace)
      : [];
    rules.push(
      ...neighbours.map(({ address }) => `-A ${chain} ${flag} ${address}/32 -j RETURN`),
      ...allowed.map((match) => `-A ${chain} ${match} -j RETURN`),
      `-A ${chain} ${refused}-j REJECT`,
    );
  };
  for (const pod of state.pods) {
    const egress = selecting(state, pod, "Egress");
    if (egress.length > 0) {
      const chain = `AMBIT-E-${pod.address}`;
      restrict(
        chain,
        pod,
        "Egress",
        egress.flatMap((policy) => allowedBy(state, policy, "Egress")),
      );
      rules.push(`-A ${chains.forward} -s ${pod.address}/32 -j ${chain}`);
      if (!state.nodeIsOpen(pod.namespace)) rules.push(`-A ${chains.input} -s ${pod.address}/32 -j ${chain}`);
    }
    const ingress = selecting(state, pod, "Ingress");
    if (ingress.length > 0) {
      const chain = `AMBIT-I-${pod.address}`;
      restrict(
        chain,
        pod,
        "Ingress",
        ingress.flatMap((policy) => allowedBy(state, policy, "Ingress")),
      );
      rules.push(`-A ${chains.forward} -d ${pod.address}/32 -j ${chain}`);
    }
  }
  return ["*filter", ...declared.map((chain) => `:${chain} - [0:0]`), ...rules, "COMMIT", ""].join("\n");
}

function allowedBy(state: State, { metadata, spec }: Policy, direction: Direction): string[] {
  return direction === "Egress"
    ? spec.egress.flatMap((rule) => matches(state, rule, rule.to, metadata.namespace, "-d"))
    : spec.ingress.flatMap((rule) => matches(state, rule, rule.from, metadata.namespace, "-s"));
}

function selecting({ policies }: State, pod: Pod, direction: Direction): Policy[] {
  return policies.filter(
    ({ metadata, spec }) =>
      metadata.namespace === pod.namespace &&
      spec.policyTypes.includes(direction) &&
      selects(spec.podSelector, pod.labels),
  );
}

export function selects({ matchLabels, matchExpressions }: Selector, labels: Labels): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every((expression) => holds(expression, labels))
  );
}

function holds({ key, operator, values }: Selector["matchExpressions"][number], labels: Labels): boolean {
  const value = labels[key];
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
  }
}

/** The matches of one rule: its peers, each with its ports. */
function matches(
  state: State,
  { ports }: Rule,
  peers: readonly Peer[],
  namespace: string,
  flag: "-s" | "-d",
): string[] {
  const addresses =
    peers.length === 0 ? [""] : peers.flatMap((peer) => peerMatches(state, peer, namespace, flag));
  const portMatches = ports.length === 0 ? [""] : ports.map(portMatch);
  return addresses.flatMap((address) => portMatches.map((port) => `${address} ${port}`.trim()));
}

function peerMatches(state: State, peer: Peer, namespace: string, flag: "-s" | "-d"): string[] {
  const { ipBlock, podSelector, namespaceSelector } = peer;
  if (ipBlock !== undefined) {
    // An exception can't be one match: no test uses one.
    if (ipBlock.except.length > 0) throw new Error("ipBlock.except isn't supported by the tests' controller");
    return ipBlock.cidr.includes(":") ? [] : [`${flag} ${ipBlock.cidr}`];
  }
  return state.everyPod
    .filter((pod) =>
      namespaceSelector === undefined
        ? pod.namespace === namespace
        : selects(namespaceSelector, state.namespaces.get(pod.namespace) ?? {}),
    )
    .filter((pod) => podSelector === undefined || selects(podSelector, pod.labels))
    .map((pod) => `${flag} ${pod.address}/32`);
}

function portMatch({ protocol, port, endPort }: Port): string {
  const name = protocol.toLowerCase();
  if (port === undefined) return `-p ${name}`;
  if (typeof port === "string") throw new Error("Named ports aren't supported by the tests' controller");
  return `-p ${name} --dport ${endPort === undefined ? port : `${port}:${endPort}`}`;
}
