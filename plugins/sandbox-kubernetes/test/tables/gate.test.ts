import { probeSpec } from "@ambit/backend-kit";
import { describe, expect, it } from "vitest";
import { gateGaps } from "../../src/claims.js";
import { configSchema } from "../../src/index.js";
import {
  isSessionPolicy,
  policySchema,
  reviewPolicies,
  sessionPolicies,
  whyNotClosed,
} from "../../src/network/policies.js";
import { gateLabels, gateManifestOf, gateName, sandboxLabels } from "../../src/pod/manifest.js";
import { whyNotShown } from "../../src/probe.js";
import { ruleOf } from "../support/gated.js";
import { owner, podOf } from "../support/manifests.js";

const config = configSchema.parse({ image: "image:1", egress: "gate" });
const lease = { name: "ambit-d-host-key", uid: "lease-uid" };
const gate = gateName(owner);
const policyOf = (name: string, spec: unknown) => policySchema.parse({ metadata: { name, uid: "u" }, spec });
const own = sessionPolicies(gate).map(({ name, spec }) => policyOf(name, spec));
const denyAll = policyOf("deny-all", {
  podSelector: { matchExpressions: [{ key: "ambit-network", operator: "NotIn", values: ["open"] }] },
  policyTypes: ["Ingress", "Egress"],
});

describe("a gate's pod", () => {
  it.each(["user-namespace", "baseline"] as const)(
    "fits the Pod Security level restricted in the shape %s",
    (podShape) => {
      const { metadata, spec } = gateManifestOf({ owner, podShape, lease, config });
      const [container, ...others] = spec?.containers ?? [];
      expect(others).toEqual([]);
      expect(spec).toMatchObject({
        automountServiceAccountToken: false,
        activeDeadlineSeconds: 1_440 * 60,
        securityContext: {
          runAsNonRoot: true,
          runAsUser: 65_532,
          seccompProfile: { type: "RuntimeDefault" },
        },
      });
      expect(spec?.volumes).toBeUndefined();
      expect(spec?.hostUsers).toBe(podShape === "user-namespace" ? false : undefined);
      expect(container?.env).toEqual([{ name: "LD_PRELOAD", value: "" }]);
      expect(container?.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      });
      // A dead runner's are found by these.
      expect(metadata).toMatchObject({
        name: `${podOf().metadata?.name}-gate`,
        labels: { ambit: "sandbox", "ambit-deployment": "d", "ambit-role": "gate", "ambit-network": "gate" },
        ownerReferences: [{ kind: "Lease", uid: "lease-uid" }],
      });
    },
  );

  it("is named on the sandbox's pod only where sessions have gates", () => {
    expect(podOf({ egress: "gate" }).metadata?.labels).toMatchObject({
      "ambit-gate": gate,
      "ambit-role": "sandbox",
    });
    expect(podOf().metadata?.labels).not.toHaveProperty("ambit-gate");
  });
});

describe("the policies of a session", () => {
  const labels = { sandbox: sandboxLabels(owner, config, false), gate: gateLabels(owner) };

  it("are the only ones that open something for its pods, and only one port between the two", () => {
    expect(reviewPolicies([denyAll, ...own], labels.sandbox).opening).toEqual([`${gate}-way`]);
    expect(reviewPolicies([denyAll, ...own], labels.gate).opening).toEqual([gate]);
    expect(whyNotClosed(reviewPolicies([denyAll], labels.gate), "n")).toBeUndefined();
    // Of another session, and of a pod without a gate.
    const other = sandboxLabels({ ...owner, session: "other" }, config, false);
    expect(reviewPolicies([denyAll, ...own], other).opening).toEqual([]);
    expect(own.map(({ spec }) => spec.egress)).toEqual([
      [
        {
          to: [{ podSelector: { matchLabels: { "ambit-gate": gate, "ambit-role": "gate" } } }],
          ports: [{ protocol: "TCP", port: 8_443 }],
        },
      ],
      [{}],
    ]);
  });

  it("are known to the letter, by whatever name", () => {
    expect(own.every(isSessionPolicy)).toBe(true);
    expect(isSessionPolicy(denyAll)).toBe(false);
    const [way] = own;
    if (way === undefined) throw new Error("there is no policy");
    const changes: readonly object[] = [
      { egress: [{}] },
      { egress: [...(way.spec.egress ?? []), {}] },
      { ingress: [{}] },
      { policyTypes: ["Ingress", "Egress"] },
      { podSelector: {} },
      { podSelector: { matchLabels: { "ambit-gate": gate } } },
      { podSelector: { matchLabels: { "ambit-gate": "other", "ambit-role": "sandbox" } } },
    ];
    for (const change of changes)
      expect(isSessionPolicy(policyOf("p", { ...way.spec, ...change }))).toBe(false);
  });
});

describe("what a gate can't do", () => {
  it("is the runner's own loopback", () => {
    const boundary = (...rules: string[]) =>
      probeSpec({ network: { mode: "allowlist", rules: rules.map(ruleOf) } }).boundary;
    expect(gateGaps(boundary("example.com", "10.0.0.0/8"))).toEqual([]);
    expect(gateGaps(boundary("example.com", "127.0.0.1/32"))).toMatchObject([
      { capability: "network.allow-cidr", fix: expect.stringContaining("bridge") },
    ]);
    expect(gateGaps(boundary("::1/128"))).toHaveLength(1);
  });
});

describe("a trial of a gate", () => {
  const good = { listed: "200 says", other: "403 no", direct: false };
  it.each([
    {
      title: "the listed server wasn't reached",
      seen: { ...good, listed: "502 no" },
      reason: /didn't reach/,
    },
    { title: "the other one was", seen: { ...good, other: "200 says" }, reason: /unlisted port/ },
    { title: "a server was reached without it", seen: { ...good, direct: true }, reason: /without it/ },
    { title: "a decision is missing", seen: good, decisions: [true], reason: /1 decisions of 2/ },
  ])("shows nothing where $title", ({ seen, decisions = [true, false], reason }) => {
    expect(whyNotShown(seen, "says", decisions)).toMatch(reason);
  });
  it("shows it else", () => {
    expect(whyNotShown(good, "says", [false, true])).toBeUndefined();
  });
});
