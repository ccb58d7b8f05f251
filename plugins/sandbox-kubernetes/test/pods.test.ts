import { setTimeout as after } from "node:timers/promises";
import { runToEnd } from "@ambit/backend-kit";
import { SandboxFailed } from "@ambit/core/plugin";
import { ownUnavailableReason } from "@ambit/test-cluster";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import type { KubernetesSandbox } from "../src/index.js";
import { Cluster, type Pod } from "../src/pod/cluster.js";
import { closed, scope, specOf, TestNamespace } from "./support/on-cluster.js";

const reason = await ownUnavailableReason();
const isThere = reason === undefined;

/** Each probes a namespace for a quarter of a minute. */
const isThorough = process.env.AMBIT_SOAK !== undefined;

/** Waits until it holds. */
async function until(holds: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await holds())) await after(100);
}

if (!isThere)
  describe("pods", () => {
    it("aren't opened", (context) => context.skip(`host: ${reason}`));
  });

if (isThere)
  describe("a pod", { timeout: 180_000 }, () => {
    let namespace: TestNamespace;
    let backend: KubernetesSandbox;

    beforeAll(async () => {
      namespace = await TestNamespace.open({ enforced: false });
      backend = namespace.backend({ hostUsers: "require", requestTimeoutMs: 5_000 });
    });
    afterAll(async () => {
      await backend?.close();
      await namespace?.close();
    });

    it("has its shape, node and user map on the receipt, and is gone when its session closes", async () => {
      const sandbox = await backend.open(specOf(), scope);
      expect(sandbox.evidence).toMatchObject({
        "kubernetes.shape": "user-namespace",
        "kubernetes.node": "n1",
        "kubernetes.userMap": expect.stringMatching(/^0 [1-9]\d+ 65536$/),
        "kubernetes.network": "a network namespace of its own",
        "bridge.ownUsers": true,
      });
      await sandbox.close();
      expect(await namespace.pods()).toStrictEqual([]);
    });

    it("has the shape baseline where its node ignores hostUsers", async () => {
      const { createPod, pod: readPod } = Cluster.prototype;
      const ignored = new Set<string>();
      const asAsked = (pod: Pod): Pod =>
        ignored.has(pod.metadata.uid) ? { ...pod, spec: { ...pod.spec, hostUsers: false } } : pod;
      vi.spyOn(Cluster.prototype, "createPod").mockImplementation(async function (
        this: Cluster,
        pod,
        signal,
      ) {
        if (pod.spec?.hostUsers !== false) return await createPod.call(this, pod, signal);
        const stored = await createPod.call(this, { ...pod, spec: { ...pod.spec, hostUsers: true } }, signal);
        ignored.add(stored.metadata.uid);
        return asAsked(stored);
      });
      vi.spyOn(Cluster.prototype, "pod").mockImplementation(async function (this: Cluster, name, signal) {
        const stored = await readPod.call(this, name, signal);
        return stored && asAsked(stored);
      });
      onTestFinished(() => void vi.restoreAllMocks());
      const [required, choosing] = [
        namespace.backend({ hostUsers: "require" }),
        namespace.backend({ hostUsers: "auto" }),
      ];
      await expect(required.open(specOf(), scope)).rejects.toThrow(/its node ignores hostUsers/);
      const sandbox = await choosing.open(specOf(), scope);
      expect(sandbox.evidence).toMatchObject({ "kubernetes.shape": "baseline" });
      expect(ignored.size).toBe(2);
      await sandbox.close();
      await Promise.all([required.close(), choosing.close()]);
      expect(await namespace.pods()).toStrictEqual([]);
    });

    it("fails its session with the reason when somebody deletes it in mid-run", async () => {
      const failures: string[] = [];
      const sandbox = await backend.open(
        specOf(closed, { onFailure: ({ message }) => failures.push(message) }),
        scope,
      );
      const command = { argv: ["/bin/sleep", "600"], env: {}, signal: scope.signal } as const;
      const process = await sandbox.spawn(command);
      const [pod] = await namespace.pods();
      await namespace.request(
        "DELETE",
        `/api/v1/namespaces/${namespace.name}/pods/${pod}?gracePeriodSeconds=1`,
      );
      await until(() => failures.length > 0);
      expect(failures[0]).toMatch(/somebody deletes the pod|was deleted|first process ended/);
      // Killed, or lost with the pod.
      await process.exit.catch(() => undefined);
      await sandbox.close();
      expect(await namespace.pods()).toStrictEqual([]);
    });

    it.each([
      {
        title: "its image is on no node",
        settings: { image: "ambit.local/missing:1" },
        message: /no node has the image ambit.local\/missing:1.*push it to a registry/,
      },
      {
        title: "no node takes it, in the scheduler's words",
        settings: { nodeSelector: { kind: "none" }, openTimeoutMs: 4_000 },
        message: /no node takes the pod: 0\/1 nodes are available.*add a node/,
      },
      {
        title: "there is no such runtime class",
        settings: { runtimeClass: "nowhere" },
        message: /RuntimeClass.*nowhere.*runtimeClass/i,
      },
      {
        title: "there is no such namespace",
        settings: { namespace: "nowhere" },
        message: /namespaces "nowhere" not found.*install deploy\/chart/,
      },
    ])("is refused with the reason and the fix where $title", async ({ settings, message }) => {
      const other = namespace.backend({ hostUsers: "require", ...settings });
      await expect(other.open(specOf(), scope)).rejects.toThrow(message);
      expect(await namespace.pods()).toStrictEqual([]);
      await other.close().catch(() => undefined);
    });

    it("is refused where the namespace's quota is used up", async () => {
      const quota = {
        apiVersion: "v1",
        kind: "ResourceQuota",
        metadata: { name: "none" },
        spec: { hard: { pods: "0" } },
      };
      const path = `/api/v1/namespaces/${namespace.name}/resourcequotas`;
      await namespace.request("POST", path, quota);
      // Admission counts once the controller has.
      await until(async () =>
        /"hard":/.test(JSON.stringify((await namespace.request("GET", `${path}/none`)).status)),
      );
      try {
        await expect(backend.open(specOf(), scope)).rejects.toThrow(/exceeded quota: none.*ResourceQuota/);
      } finally {
        await namespace.request("DELETE", `${path}/none`);
      }
    });

    it("ends with the memory limit of its run, and says so", async () => {
      const failures: SandboxFailed[] = [];
      const boundary = { ...closed, resources: { memoryMb: 96 } };
      const spec = specOf(boundary, { onFailure: (failure) => failures.push(failure) });
      const sandbox = await backend.open(spec, scope);
      const path = sandbox.image?.searchPath ?? "";
      const script = "const all = []; for (;;) all.push(Buffer.alloc(1 << 22, 1));";
      const command = { argv: ["node", "-e", script], env: { PATH: path }, signal: scope.signal } as const;
      // The kernel ends the process alone, or the container with it: that depends on the control groups' version.
      const ended = await runToEnd(sandbox, command).then(
        ({ exit }) => exit.signal ?? `${exit.code}`,
        (error: unknown) => (error instanceof SandboxFailed ? "lost" : "wrong"),
      );
      expect(["SIGKILL", "SIGABRT", "137", "lost"]).toContain(ended);
      for (const { concerns, message } of failures) {
        expect(message).toMatch(/more memory than its limit/);
        expect(concerns).toBe("session");
      }
      await sandbox.close();
    });

    it("is deleted with the leftovers of a runner that lives no more", async () => {
      const dead = namespace.backend({ hostUsers: "require" });
      const left = await dead.open(specOf(), scope);
      // Its lease has expired, and it is of another host: only the lease shows that its pod isn't needed.
      const leases = `/apis/coordination.k8s.io/v1/namespaces/${namespace.name}/leases`;
      const { items } = await namespace.request("GET", leases);
      if (!Array.isArray(items)) throw new Error("the API server sent no list");
      for (const lease of items) {
        const expired = { ...lease, spec: { ...lease.spec, renewTime: "2020-01-01T00:00:00.000000Z" } };
        await namespace.request("PUT", `${leases}/${lease.metadata.name}`, expired);
      }
      const other = namespace.backend({
        hostUsers: "require",
        dataFolder: `${namespace.settings.dataFolder}-other`,
      });
      await other.probe(AbortSignal.timeout(60_000), []);
      await until(async () => (await namespace.pods()).length === 0);
      await left.close();
      await Promise.all([dead.close(), other.close()]);
    });
  });

if (isThere)
  describe("a pod of the shape baseline", { timeout: 180_000 }, () => {
    it("waits for a policy that comes late, and is then closed", async () => {
      const namespace = await TestNamespace.open({ delayMs: 1_500 });
      const backend = namespace.backend({ hostUsers: "off" });
      const findings = await backend.probe(AbortSignal.timeout(120_000), ["network.deny"]);
      // The control: a pod without limits has such a socket.
      const shown = expect.stringMatching(/has sockets of TCP and UDP only \(without limits also ICMP, /);
      expect(findings).toMatchObject([{ capability: "network.deny", proven: true, how: shown }]);
      const sandbox = await backend.open(specOf(), scope);
      expect(sandbox.evidence["kubernetes.network"]).toMatch(/^policy, closed after \d+ ms for \d+ targets$/);
      await sandbox.close();
      await backend.close();
      await namespace.close();
    });

    it.each([
      {
        title: "nothing enforces policies",
        behaviour: { enforced: false },
        hasPolicy: true,
        reason: /a pod still reaches .* doesn't enforce the namespace's NetworkPolicy/,
        fix: /Cilium with its host firewall/,
      },
      {
        title: "only TCP is refused",
        behaviour: { onlyTcp: true },
        hasPolicy: true,
        reason: /a pod still reaches 169.254.20.10:53 over UDP after/,
        fix: /user namespaces/,
      },
      ...(isThorough
        ? [
            {
              title: "the node's own ports stay open",
              behaviour: { nodeIsOpen: true },
              hasPolicy: true,
              reason: /a pod still reaches .*:10250/,
              fix: /user namespaces/,
            },
            {
              title: "no policy denies anything",
              behaviour: {},
              hasPolicy: false,
              reason: /no NetworkPolicy of the namespace .* denies its pods ingress and egress/,
              fix: /network-policy.yaml/,
            },
          ]
        : []),
    ])("isn't proven where $title", async ({ behaviour, hasPolicy, reason: why, fix }) => {
      const namespace = await TestNamespace.open(behaviour, { hasPolicy });
      const backend = namespace.backend({ hostUsers: "off", settleMs: 2_000 });
      const [finding] = await backend.probe(AbortSignal.timeout(120_000), ["network.deny"]);
      expect(finding).toMatchObject({
        proven: false,
        reason: expect.stringMatching(why),
        fix: expect.stringMatching(fix),
      });
      await backend.close();
      await namespace.close();
    });

    it("proves no network where pods reach each other, with or without a list", async () => {
      const namespace = await TestNamespace.open({ neighboursAreOpen: true });
      const backend = namespace.backend({ hostUsers: "off" });
      const claims = ["network.deny", "network.allow-cidr", "network.allow-host"] as const;
      const findings = await backend.probe(AbortSignal.timeout(120_000), claims);
      const reason = expect.stringMatching(/reached .*connect 10\.\d+\.\d+\.\d+ \d+/);
      const fix = expect.stringMatching(/over IPv6/);
      expect(findings).toMatchObject(
        claims.map((capability) => ({ capability, proven: false, reason, fix })),
      );
      await backend.close();
      await namespace.close();
    });

    if (isThorough)
      it("isn't proven where another policy opens what ours denies, by its name", async () => {
        const namespace = await TestNamespace.open();
        const policy = { podSelector: {}, policyTypes: ["Egress"], egress: [{}] };
        const path = `/apis/networking.k8s.io/v1/namespaces/${namespace.name}/networkpolicies`;
        const kind = { apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy" };
        await namespace.request("POST", path, { ...kind, metadata: { name: "team-default" }, spec: policy });
        const backend = namespace.backend({ hostUsers: "off" });
        const [finding] = await backend.probe(AbortSignal.timeout(120_000), ["network.deny"]);
        expect(finding).toMatchObject({ proven: false, reason: expect.stringMatching(/team-default/) });
        await backend.close();
        await namespace.close();
      });
  });
