import { describe, expect, it } from "vitest";
import { type Labels, type Pod, policySchema } from "../src/policy/objects.js";
import { firewall } from "../src/policy/rules.js";

const pod = (number: number, namespace: string, labels: Labels = {}): Pod => ({
  name: `p${number}`,
  namespace,
  labels,
  address: `10.244.0.${number}`,
});
const policy = (namespace: string, spec: object) =>
  policySchema.parse({ metadata: { name: "policy", namespace }, spec });

function rulesFor(pods: readonly Pod[], policies: readonly object[], nodeIsOpen = false): string[] {
  const text = firewall({
    pods,
    everyPod: pods,
    policies: policies.map((one) => policy("n", one)),
    namespaces: new Map<string, Labels>([
      ["n", {}],
      ["other", { team: "red" }],
    ]),
    nodeIsOpen: () => nodeIsOpen,
  });
  return text.split("\n").filter((line) => /^-A /.test(line) && !line.includes("conntrack"));
}

const both = ["Ingress", "Egress"];

describe("the tests' policy controller", () => {
  it("restricts nothing without a policy, and no pod of another namespace", () => {
    expect(rulesFor([pod(2, "n")], [])).toEqual([]);
    expect(rulesFor([pod(2, "other")], [{ policyTypes: both }])).toEqual([]);
  });

  it("closes a selected pod in both directions, and to the node", () => {
    expect(rulesFor([pod(2, "n")], [{ policyTypes: both }])).toEqual([
      "-A AMBIT-E-10.244.0.2 -j REJECT",
      "-A AMBIT-FORWARD -s 10.244.0.2/32 -j AMBIT-E-10.244.0.2",
      "-A AMBIT-INPUT -s 10.244.0.2/32 -j AMBIT-E-10.244.0.2",
      "-A AMBIT-I-10.244.0.2 -j REJECT",
      "-A AMBIT-FORWARD -d 10.244.0.2/32 -j AMBIT-I-10.244.0.2",
    ]);
  });

  it("leaves the node open where the namespace says so", () => {
    const rules = rulesFor([pod(2, "n")], [{ policyTypes: ["Egress"] }], true);
    expect(rules.filter((rule) => rule.includes("AMBIT-INPUT"))).toEqual([]);
  });

  it("adds policies up", () => {
    const rules = rulesFor(
      [pod(2, "n")],
      [{ policyTypes: ["Egress"] }, { policyTypes: ["Egress"], egress: [{}] }],
    );
    expect(rules.slice(0, 2)).toEqual([
      "-A AMBIT-E-10.244.0.2  -j RETURN",
      "-A AMBIT-E-10.244.0.2 -j REJECT",
    ]);
  });

  it("names a rule's pods, blocks and ports", () => {
    const pods = [pod(2, "n", { role: "sandbox" }), pod(3, "n", { role: "gate" }), pod(4, "other")];
    const egress = [
      { to: [{ podSelector: { matchLabels: { role: "gate" } } }], ports: [{ port: 8080 }] },
      { to: [{ namespaceSelector: { matchLabels: { team: "red" } } }] },
      { to: [{ ipBlock: { cidr: "192.0.2.0/24" } }], ports: [{ protocol: "UDP", port: 53, endPort: 54 }] },
    ];
    const podSelector = { matchExpressions: [{ key: "role", operator: "In", values: ["sandbox"] }] };
    expect(rulesFor(pods, [{ podSelector, policyTypes: ["Egress"], egress }]).slice(0, 4)).toEqual([
      "-A AMBIT-E-10.244.0.2 -d 10.244.0.3/32 -p tcp --dport 8080 -j RETURN",
      "-A AMBIT-E-10.244.0.2 -d 10.244.0.4/32 -j RETURN",
      "-A AMBIT-E-10.244.0.2 -d 192.0.2.0/24 -p udp --dport 53:54 -j RETURN",
      "-A AMBIT-E-10.244.0.2 -j REJECT",
    ]);
  });
});
