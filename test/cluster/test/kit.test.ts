import { bareControl, judgeCapability } from "@ambit/testkit";
import { describe, expect, it, onTestFinished } from "vitest";
import { type OwnCluster, ownUnavailableReason, type PolicyBehaviour, testCluster } from "../src/index.js";
import { podBackend } from "./support/pod-backend.js";

/** Longer than any attack takes. */
const late = { delayMs: 600_000 };

async function judge(own: OwnCluster, image: string, policy: PolicyBehaviour) {
  const [closed, open] = await Promise.all([own.createNamespace({}, policy), own.createNamespace()]);
  onTestFinished(async () => {
    await Promise.all([closed.remove(), open.remove()]);
  });
  const api = own.api();
  await api.request("POST", `/apis/networking.k8s.io/v1/namespaces/${closed.name}/networkpolicies`, {
    metadata: { name: "deny-all" },
    spec: { podSelector: {}, policyTypes: ["Ingress", "Egress"] },
  });
  api.close();
  const backend = podBackend(own, image, { closed: closed.name, open: open.name });
  const findings = await backend.probe(AbortSignal.timeout(1_000));
  const only = ["network.deny/near", "network.deny/near-at-once"];
  const { attacks } = await judgeCapability(backend, findings, "network.deny", {
    control: bareControl(),
    only,
  });
  return attacks.map(({ id, verdict, control, guarded }) => ({
    verdict: `${id} ${verdict}`,
    seen: `control: ${control.detail}; guarded: ${guarded.detail}`,
  }));
}

describe("the kit, on pods whose backend only pretends to limit them", () => {
  it.for([
    { title: "catches a network that a policy closes too late", policy: late, verdict: "escaped" },
    { title: "passes one that a policy closes at once", policy: {}, verdict: "proven" },
  ])("$title", { timeout: 240_000 }, async ({ policy, verdict }, context) => {
    const reason = await ownUnavailableReason();
    if (reason !== undefined) context.skip(`host: ${reason}`);
    const { own, image } = await testCluster();
    if (own === undefined) throw new Error("not the tests' own");
    const rows = await judge(own, image, policy);
    expect(
      rows.map((row) => row.verdict),
      rows.map(({ seen }) => seen).join("\n"),
    ).toEqual([`network.deny/near ${verdict}`, `network.deny/near-at-once ${verdict}`]);
  });
});
