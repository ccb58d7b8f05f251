import { describe, expect, it } from "vitest";
import { policySchema, reviewPolicies, whyNotClosed } from "../../src/network/policies.js";
import { candidates, router6In, routerIn } from "../../src/probe.js";

const policy = (name: string, spec: object) => policySchema.parse({ metadata: { name }, spec });
const denyAll = policy("deny-all", {
  podSelector: { matchExpressions: [{ key: "ambit-network", operator: "NotIn", values: ["open"] }] },
  policyTypes: ["Ingress", "Egress"],
});
const labels = { ambit: "sandbox", "ambit-network": "closed" };
const both = ["Ingress", "Egress"];

describe("the policies of a namespace", () => {
  it("close pods of a boundary, and leave the others open", () => {
    expect(whyNotClosed(reviewPolicies([denyAll], labels), "n")).toBeUndefined();
    expect(reviewPolicies([denyAll], { ...labels, "ambit-network": "open" })).toMatchObject({
      deniesEgress: false,
    });
  });

  it.each([
    { title: "there are none", policies: [], reason: /denies its pods ingress and egress/ },
    {
      title: "they concern ingress only",
      policies: [policy("in", { podSelector: {}, policyTypes: ["Ingress"] })],
      reason: /denies its pods egress/,
    },
    {
      title: "they select other pods",
      policies: [policy("other", { podSelector: { matchLabels: { app: "x" } }, policyTypes: both })],
      reason: /denies its pods ingress and egress/,
    },
    {
      title: "another one allows everything",
      policies: [denyAll, policy("open", { podSelector: {}, policyTypes: ["Egress"], egress: [{}] })],
      reason: /policies add up, and open of the namespace n allow/,
    },
    {
      title: "another one allows names, by the label of sandboxes",
      policies: [
        denyAll,
        policy("dns", {
          podSelector: { matchLabels: { ambit: "sandbox" } },
          policyTypes: ["Egress"],
          egress: [{ ports: [{ port: 53 }] }],
        }),
      ],
      reason: /dns of the namespace/,
    },
    {
      title: "another one lets others in",
      policies: [denyAll, policy("in", { podSelector: {}, ingress: [{ from: [{ podSelector: {} }] }] })],
      reason: /in of the namespace/,
    },
    {
      title: "another one has an operator that isn't known",
      policies: [
        denyAll,
        policy("new", { podSelector: { matchExpressions: [{ key: "k", operator: "Like" }] }, egress: [{}] }),
      ],
      reason: /new of the namespace/,
    },
  ])("don't close them if $title", ({ policies, reason }) => {
    const why = whyNotClosed(reviewPolicies(policies, labels), "n");
    expect(why?.reason).toMatch(reason);
    expect(why?.fix).not.toBe("");
  });

  it.each([
    { title: "allows another pod", spec: { podSelector: { matchLabels: { app: "x" } }, egress: [{}] } },
    {
      title: "allows pods with a label that ours lack",
      spec: { podSelector: { matchExpressions: [{ key: "app", operator: "Exists" }] }, egress: [{}] },
    },
    { title: "denies once more", spec: { podSelector: {}, policyTypes: both } },
  ])("still close them if another one $title", ({ spec }) => {
    expect(whyNotClosed(reviewPolicies([denyAll, policy("p", spec)], labels), "n")).toBeUndefined();
  });
});

describe("what a pod's network is tried with", () => {
  const seen = {
    server: new URL("https://[fd00::1]:6443/"),
    nodeAddresses: ["10.0.0.5", "fd00::5"],
    environment: "PATH=/bin\nKUBERNETES_SERVICE_HOST=10.96.0.1\nKUBERNETES_SERVICE_PORT=443\n",
    resolvers: "search x\nnameserver 10.96.0.10\n",
    routes: "Iface\tDestination\tGateway\neth0\t00000000\t0100F40A\teth0\n",
    routes6: `${"0".repeat(32)} 00 ${"0".repeat(32)} 00 fe800000000000000000000000000001 00000400 1 0 00450003 eth0\n`,
  };

  it("has the node, the API, names, metadata, and what the deployer lists", () => {
    const words = candidates(seen, [{ host: "203.0.113.1", port: 443 }]).map(
      ({ host, port, protocol }) => `${host} ${port}${protocol === "udp" ? " udp" : ""}`,
    );
    expect(words).toEqual(
      expect.arrayContaining([
        "203.0.113.1 443",
        "10.0.0.5 10250",
        "10.0.0.5 22",
        "10.244.0.1 10250",
        "10.96.0.1 443",
        "fd00::1 6443",
        "10.96.0.10 53",
        "169.254.169.254 80",
        "169.254.20.10 53",
        "10.96.0.10 53 udp",
        "169.254.20.10 53 udp",
        "kube-dns.kube-system.svc 53 udp",
        "10.0.0.5 6443",
        "fd00::5 10250",
        "fe80:0000:0000:0000:0000:0000:0000:0001%eth0 22",
        "kubernetes.default.svc 443",
        "metrics-server.kube-system.svc 443",
        "fd00:ec2::254 80",
      ]),
    );
    expect(new Set(words).size).toBe(words.length);
  });

  it("does without what a pod doesn't show", () => {
    const bare = { ...seen, nodeAddresses: [], environment: "", resolvers: "", routes: "", routes6: "" };
    expect(candidates(bare, [])).toContainEqual({ host: "169.254.169.254", port: 80 });
    expect(routerIn("no table")).toBeUndefined();
    expect(router6In("no table")).toBeUndefined();
  });
});
