import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { ownUnavailableReason } from "@ambit/test-cluster";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { configSchema } from "../../src/index.js";
import { gateManifestOf } from "../../src/pod/manifest.js";
import { Gated, sh } from "../support/gated.js";
import { owner, podOf } from "../support/manifests.js";
import { scope, specOf, TestNamespace } from "../support/on-cluster.js";
import { ofPolicies, startWebhook } from "../support/webhook.js";

const reason = await ownUnavailableReason();
const isThorough = process.env.AMBIT_SOAK !== undefined;
const patience = { timeout: 120_000, interval: 200 };
const killedRunner = fileURLToPath(new URL("../support/killed-runner.mjs", import.meta.url));

if (reason !== undefined)
  describe("the lifetime of a gate", () => {
    it("isn't tried", (context) => context.skip(`host: ${reason}`));
  });
else {
  describe("the lifetime of a gate", { timeout: 400_000 }, () => {
    let gated: Gated;
    beforeAll(async () => {
      gated = await Gated.open("user-namespace");
    });
    afterAll(() => gated?.close());

    it("ends with a runner that is killed: it forwards nothing at once, and nothing is left later", async () => {
      const settings = {
        ...gated.namespace.settings,
        hostUsers: "require",
        egress: "gate",
        openTimeoutMs: 15_000,
        bridge: { folder: "/ambit", heartbeatTimeoutMs: 4_000, orphanTimeoutMs: 6_000 },
      };
      const child = spawn(process.execPath, [killedRunner, JSON.stringify(settings)], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      const [line] = await once(createInterface(child.stdout), "line");
      const names = String(line)
        .split(" ")
        .map((one) => one.split("/")[1] ?? "");
      const [sandbox = "", gate = ""] = names;
      const phaseOf = async (name: string) =>
        Object((await gated.namespace.request("GET", gated.pathOf(name))).status).phase;
      // 8443 in hexadecimal, and the state of a listening socket.
      const listening = () =>
        gated.inGate(gate, "cat /proc/net/tcp /proc/net/tcp6 | grep -c ':20FB .* 0A ' || true");
      expect(await listening()).toBe("1");
      const killedAt = Date.now();
      child.kill("SIGKILL");
      await expect.poll(listening, patience).toBe("0");
      // Far below the limit for a silent runner: the end of the stream was enough.
      expect(Date.now() - killedAt).toBeLessThan(15_000);
      // Each pod ends by itself: no request to the API server deleted it.
      await expect.poll(() => phaseOf(gate), patience).toBe("Succeeded");
      await expect.poll(() => phaseOf(sandbox), patience).toBe("Succeeded");
      const other = gated.backend();
      await other.probe(AbortSignal.timeout(240_000), ["environment.named-only"]);
      await expect.poll(() => gated.namespace.pods(), patience).toEqual([]);
      // The cluster deletes them with the gate's pod: all but the namespace's own.
      await expect.poll(() => gated.listOf("networkpolicies").then((all) => all.length), patience).toBe(1);
    });

    it("begins when a prepared pod is given to a session", async () => {
      const backend = gated.backend({ prewarm: 1 });
      const isPrepared = async () => {
        const sandbox = await backend.open(specOf(gated.boundary), scope);
        const { stdout } = await sh(sandbox, `curl -sS http://listed.test:${gated.port}/`);
        expect(stdout).toContain("it got");
        const name = String(sandbox.evidence["kubernetes.pod"]).split("/")[1] ?? "";
        const session = (await gated.namespace.sessions()).get(name);
        await sandbox.close();
        return session?.startsWith("warm-") === true;
      };
      await expect.poll(isPrepared, { timeout: 180_000, interval: 2_000 }).toBe(true);
      await backend.close();
      expect(await gated.namespace.pods()).toEqual([]);
    });

    it("isn't opened where a webhook opens more by its policies, and nothing is left", async () => {
      const stop = await startWebhook(
        gated.namespace,
        [{ op: "replace", path: "/spec/egress", value: [{ ports: [{ protocol: "TCP", port: 80 }] }] }],
        ofPolicies,
      );
      try {
        const backend = gated.backend();
        // The API server learns of a webhook some time after it has accepted it.
        const why = async () => {
          const opened = await backend.open(specOf(gated.boundary), scope).catch((error: Error) => error);
          if (opened instanceof Error) return opened.message;
          await opened.close();
          return "";
        };
        await expect.poll(why, patience).toMatch(/The cluster changed the NetworkPolicy ambit-/);
        expect(await gated.namespace.pods()).toEqual([]);
        expect(await gated.listOf("networkpolicies")).toHaveLength(1);
      } finally {
        await stop();
      }
    });

    // It stops the cluster's API server for all tests, and measures, which takes the machine.
    if (!isThorough) return;

    it("fails its session when the API server is away, and lets nothing through then", async () => {
      const failures: string[] = [];
      const backend = gated.backend();
      const onFailure = ({ message }: Error) => void failures.push(message);
      const sandbox = await backend.open(specOf(gated.boundary, { onFailure }), scope);
      const ask = `curl -sS -m 5 http://listed.test:${gated.port}/ 2>&1`;
      expect((await sh(sandbox, ask)).stdout).toContain("it got");
      await gated.namespace.own.kill("kube-apiserver");
      await expect.poll(() => failures.length, patience).toBe(1);
      expect(failures[0]).toMatch(/gate of the sandbox was lost/);
      await gated.namespace.own.start("kube-apiserver");
      const late = await sh(sandbox, ask).catch(() => ({ stdout: "" }));
      expect(late.stdout).not.toContain("it got");
      await sandbox.close();
    });

    it("carries more than the bridge does", async () => {
      const [megabytes, url] = [240, `http://listed.test:${gated.port}/body`];
      const rate = async (egress: "gate" | "bridge" | "none") => {
        const backend = gated.backend(egress === "none" ? {} : { egress });
        const boundary =
          egress === "none" ? ({ network: { mode: "on", rules: [] } } as const) : gated.boundary;
        const sandbox = await backend.open(specOf(boundary), scope);
        const at = egress === "none" ? url.replace("listed.test", gated.host) : url;
        const all = Array.from({ length: megabytes / 24 }, () => `-o /dev/null ${at}`).join(" ");
        const begun = performance.now();
        expect((await sh(sandbox, `curl -sS ${all}`)).code).toBe(0);
        const took = performance.now() - begun;
        await sandbox.close();
        return megabytes / (took / 1_000);
      };
      const rounds: Record<string, number[]> = { none: [], gate: [], bridge: [] };
      for (let round = 0; round < 3; round += 1)
        for (const egress of ["none", "gate", "bridge"] as const) rounds[egress]?.push(await rate(egress));
      const median = (egress: string) => rounds[egress]?.toSorted((one, other) => one - other)[1] ?? 0;
      console.log(
        `MB/s: bare pod ${median("none")}, gate ${median("gate")}, bridge ${median("bridge")}`,
        rounds,
      );
      expect(median("gate") / median("bridge")).toBeGreaterThan(1);
    });
  });

  it("is a pod that the Pod Security level restricted lets in, unlike a sandbox's", {
    timeout: 120_000,
  }, async () => {
    const restricted = { "pod-security.kubernetes.io/enforce": "restricted" };
    const namespace = await TestNamespace.open({ enforced: false }, { labels: restricted });
    try {
      const settings = { ...namespace.settings, egress: "gate" } as const;
      const lease = { name: "ambit-d-host-key", uid: "lease-uid" };
      const config = configSchema.parse(settings);
      const create = async (pod: object) =>
        await namespace.request("POST", `/api/v1/namespaces/${namespace.name}/pods?dryRun=All`, pod);
      const gate = gateManifestOf({ owner, podShape: "user-namespace", lease, config });
      expect(await create(gate)).toMatchObject({ kind: "Pod" });
      await expect(create(podOf(settings))).rejects.toThrow(/violates PodSecurity/);
    } finally {
      await namespace.close();
    }
  });

  describe("a gate where another policy opens what ours denies", { timeout: 240_000 }, () => {
    it("isn't opened in the shape baseline, by that policy's name", async () => {
      const gated = await Gated.open("baseline");
      const { namespace } = gated;
      const path = `/apis/networking.k8s.io/v1/namespaces/${namespace.name}/networkpolicies`;
      const policy = (name: string, podSelector: object) => ({
        apiVersion: "networking.k8s.io/v1",
        kind: "NetworkPolicy",
        metadata: { name },
        spec: { podSelector, policyTypes: ["Egress"], egress: [{ ports: [{ port: 53 }] }] },
      });
      const backend = gated.backend();
      await namespace.request(
        "POST",
        path,
        policy("team-names", { matchLabels: { "ambit-role": "sandbox" } }),
      );
      await expect(backend.open(specOf(gated.boundary), scope)).rejects.toThrow(
        /isn't the only one: .*team-names/,
      );
      await namespace.request("DELETE", `${path}/team-names`);
      await namespace.request("POST", path, policy("team-gates", { matchLabels: { "ambit-role": "gate" } }));
      await expect(backend.open(specOf(gated.boundary), scope)).rejects.toThrow(
        /isn't the only one: .*team-gates/,
      );
      await namespace.request("DELETE", `${path}/team-gates`);
      // The control.
      const sandbox = await backend.open(specOf(gated.boundary), scope);
      await sandbox.close();
      expect(await namespace.pods()).toEqual([]);
      await gated.close();
    });
  });
}
