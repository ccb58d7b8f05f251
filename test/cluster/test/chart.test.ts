import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { page, settingsSchema } from "../../../scripts/docs/chart-settings.mjs";
import { type OwnCluster, ownUnavailableReason, testCluster } from "../src/index.js";
import { chart, run, whyNoHelm } from "./support/release.js";

it("has the same settings of sandboxes in its values as the plugin", () => {
  const { properties } = JSON.parse(readFileSync(page, "utf8"));
  const fix = "after a build: node scripts/docs/chart-settings.mjs";
  expect(properties.sandboxes.properties.settings, fix).toStrictEqual(settingsSchema());
});

const reason = await ownUnavailableReason();
const own = reason === undefined ? (await testCluster()).own : undefined;
const why = reason ?? (own === undefined ? "no cluster" : whyNoHelm(own));

/** What the chart can't know. */
const least = { image: { repository: "r/ambit" }, sandboxes: { image: "r/sandbox:1" } };

/** The chart as the API server of 1.35 gets it. */
async function rendered(
  cluster: OwnCluster,
  values: object,
  namespace: string,
  apis: readonly string[] = [],
) {
  const versions = ["--kube-version", "1.35.0", ...apis.flatMap((name) => ["--api-versions", name])];
  const argv = ["template", "ambit", chart, "--namespace", namespace, "--values", "-", ...versions];
  return await run(`${cluster.place.programs}/helm`, argv, JSON.stringify(values));
}

if (own === undefined || why !== undefined)
  describe("the chart", () => {
    it("isn't rendered", (context) => context.skip(`host: ${why}`));
  });
else
  describe("the chart", () => {
    let namespace = { name: "", remove: async () => {} };
    let sandboxes = { name: "", remove: async () => {} };
    beforeAll(async () => {
      [namespace, sandboxes] = await Promise.all([own.createNamespace(), own.createNamespace()]);
    });
    afterAll(async () => {
      await Promise.all([namespace.remove(), sandboxes.remove()]);
    });

    it.each([
      { title: "a mistyped name", values: { image: { repositry: "x" } }, says: "'repositry' not allowed" },
      { title: "no image", values: { image: { repository: "" } }, says: "/image/repository" },
      { title: "words for a number", values: { runner: { replicas: "two" } }, says: "/runner/replicas" },
      { title: "no time to drain", values: { runner: { drainSeconds: -1 } }, says: "/runner/drainSeconds" },
      {
        title: "a credential's value",
        values: { runner: { env: [{ name: "GEMINI_API_KEY", value: "AIza" }] } },
        says: "/runner/env/0",
      },
      {
        title: "a setting that the chart makes itself",
        values: { config: { server: { drainMs: 5 } } },
        says: "/config/server/drainMs",
      },
      {
        title: "a tenant's webhook secret",
        values: { config: { tokens: [{ webhookSecret: "s" }] } },
        says: "/config/tokens/0/webhookSecret",
      },
      {
        title: "a setting that the plugin doesn't have",
        values: { sandboxes: { settings: { memroyMb: 1 } } },
        says: "'memroyMb' not allowed",
      },
      {
        title: "a setting of the wrong type",
        values: { sandboxes: { settings: { prewarm: 1_000 } } },
        says: "/sandboxes/settings/prewarm",
      },
      { title: "an ingress without a host", values: { ingress: { enabled: true } }, says: "/ingress/host" },
      {
        title: "no range",
        values: { networkPolicy: { cidrs: ["10.0.0.1"] } },
        says: "/networkPolicy/cidrs/0",
      },
    ])("refuses $title by its name", async ({ values, says }) => {
      const merged = {
        ...least,
        ...values,
        sandboxes: { ...least.sandboxes, ...("sandboxes" in values ? values.sandboxes : {}) },
      };
      const { code, text } = await rendered(own, merged, namespace.name);
      expect(text).toContain(says);
      expect(code).not.toBe(0);
    });

    it.each([
      {
        title: "sandboxes beside the runners",
        values: { sandboxes: { ...least.sandboxes, namespace: "ambit" } },
        says: /sandboxes.namespace must be another one/,
      },
      {
        title: "a monitor without its operator",
        values: { serviceMonitor: { enabled: true } },
        says: /serviceMonitor.enabled: .* install the Prometheus operator/,
      },
      {
        title: "a maximum below the minimum",
        values: { autoscaling: { enabled: true, minReplicas: 5, maxReplicas: 2 } },
        says: /autoscaling.maxReplicas is below/,
      },
    ])("refuses $title", async ({ values, says }) => {
      const { code, text } = await rendered(own, { ...least, ...values }, "ambit");
      expect(text).toMatch(says);
      expect(code).not.toBe(0);
    });

    it("lets runners make policies only where sessions have gates", async () => {
      const roleWith = async (settings: object) => {
        const values = { ...least, sandboxes: { ...least.sandboxes, settings } };
        const { code, text } = await rendered(own, values, "ambit");
        expect(code).toBe(0);
        return /kind: Role\n[\s\S]*?---/.exec(text)?.[0] ?? "";
      };
      const policies = /resources: \[networkpolicies\]\s+verbs: \[create, delete\]/;
      expect(await roleWith({ egress: "gate" })).toMatch(policies);
      expect(await roleWith({ egress: "bridge" })).not.toMatch(policies);
      expect(await roleWith({})).toContain("networkpolicies");
      expect(await roleWith({})).not.toMatch(policies);
    });

    const everything = {
      image: { repository: "r/ambit", digest: `sha256:${"0".repeat(64)}`, pullSecrets: ["registry"] },
      config: { limits: { concurrentRuns: 20 }, require: { network: "off" } },
      plugins: ["@ambit/sandbox-daytona", { use: "./mine.mjs", config: { a: 1 } }],
      runner: {
        replicas: 3,
        host: "::",
        env: [
          { name: "LEVEL", value: "debug" },
          { name: "API_KEY", valueFrom: { secretKeyRef: { name: "models", key: "gemini" } } },
        ],
        annotations: { a: "b" },
        accountAnnotations: { role: "x" },
        filesClaim: "files",
        priorityClassName: "system-cluster-critical",
        nodeSelector: { pool: "runners" },
        tolerations: [{ key: "runners", operator: "Exists" }],
      },
      service: { type: "LoadBalancer", port: 443, nodePort: 30_999, annotations: { a: "b" } },
      ingress: {
        enabled: true,
        className: "nginx",
        host: "a.example",
        tlsSecret: "tls",
        annotations: { a: "b" },
      },
      networkPolicy: { cidrs: ["10.0.0.0/8"], egress: [{ ports: [{ protocol: "UDP", port: 53 }] }] },
      autoscaling: { enabled: true },
      sandboxes: {
        image: "r/sandbox@sha256:1",
        namespaceLabels: { team: "a" },
        pullSecrets: ["registry"],
        hostUsers: "off",
        runtimeClass: "gvisor",
        nodeSelector: { pool: "sandboxes" },
        tolerations: [{ key: "sandboxes", operator: "Exists", effect: "NoSchedule" }],
        settings: { memoryMb: 512, reserve: { cpus: 0.1 }, bridge: { reconnectTimeoutMs: 60_000 } },
        quota: { "requests.memory": "64Gi" },
        maxPerContainer: { cpu: 4, memory: "8Gi" },
      },
    };

    it.each([
      { title: "the least values", values: least },
      { title: "every value", values: everything },
      { title: "no runner", values: { runner: { enabled: false } } },
      {
        title: "what a cluster has already",
        values: {
          ...least,
          networkPolicy: { enabled: false },
          sandboxes: { ...least.sandboxes, createNamespace: false },
        },
      },
    ])("is accepted by the API server with $title", async ({ values }) => {
      const merged = {
        ...values,
        sandboxes: { ...("sandboxes" in values ? values.sandboxes : {}), namespace: sandboxes.name },
      };
      const { code, text } = await rendered(own, merged, namespace.name);
      expect(code, text).toBe(0);
      const objects = text.match(/^kind: /gm)?.length ?? 0;
      expect(objects).toBeGreaterThan(6);
      const dryRun = (yaml: string) => {
        const argv = ["apply", "--server-side", "--dry-run=server", "--force-conflicts", "-f", "-"];
        return run(`${own.place.programs}/kubectl`, ["--kubeconfig", own.kubeconfig, ...argv], yaml);
      };
      const accepted = await dryRun(text);
      expect(accepted.code, accepted.text).toBe(0);
      expect(accepted.text.match(/serverside-applied \(server dry run\)/g)).toHaveLength(objects);
      // The same with a field that no object has.
      const wrong = await dryRun(
        text.replace("automountServiceAccountToken:", "automountServiceAcountToken:"),
      );
      expect(wrong.text).toMatch(/automountServiceAcountToken|unknown field|not declared in schema/);
    });

    it("has nothing that Helm's linter objects to, which it does to a mistyped name", async () => {
      const lint = (values: object) => {
        const argv = ["lint", chart, "--strict", "--kube-version", "1.35.0", "--values", "-"];
        return run(`${own.place.programs}/helm`, argv, JSON.stringify(values));
      };
      const [small, whole, wrong] = [await lint(least), await lint(everything), await lint({ runer: {} })];
      expect(small.text).toContain("1 chart(s) linted, 0 chart(s) failed");
      expect(small.code, small.text).toBe(0);
      expect(whole.code, whole.text).toBe(0);
      expect(wrong.text).toContain("runer");
      expect(wrong.code).not.toBe(0);
    });

    it("refers a monitor to the secret's token", async () => {
      const values = { ...least, serviceMonitor: { enabled: true, labels: { release: "prometheus" } } };
      const { text } = await rendered(own, values, "ambit", ["monitoring.coreos.com/v1"]);
      expect(text).toMatch(/kind: ServiceMonitor[\s\S]*credentials: \{ name: ambit, key: token \}/);
    });

    it("gives a pod longer than its runs", async () => {
      const values = { ...least, runner: { drainSeconds: 1_000 } };
      const { text } = await rendered(own, values, "ambit");
      const graceSeconds = Number(/terminationGracePeriodSeconds: (\d+)/.exec(text)?.[1]);
      expect(text).toContain('"drainMs": 1000000');
      expect(graceSeconds).toBeGreaterThan(1_000 + 5 + 30);
    });
  });
