import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as after } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { runToEnd } from "@ambit/backend-kit";
import { ownUnavailableReason } from "@ambit/test-cluster";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubernetesSandbox } from "../src/index.js";
import { accountWith } from "./support/account.js";
import { closed, scope, specOf, TestNamespace } from "./support/on-cluster.js";
import { startWebhook } from "./support/webhook.js";

const reason = await ownUnavailableReason();
const isThorough = process.env.AMBIT_SOAK !== undefined;
const patience = { timeout: 240_000, interval: 500 };

/** What a webhook does to a pod: the first in every run. */
const changes = [
  {
    title: "a sidecar",
    patch: { op: "add", path: "/spec/containers/-", value: { name: "mesh", image: "mesh:1" } },
    field: "spec.containers[mesh]",
  },
  {
    title: "a variable",
    patch: { op: "add", path: "/spec/containers/0/env/-", value: { name: "HTTP_PROXY", value: "x" } },
    field: "spec.containers[sandbox].env[HTTP_PROXY]",
  },
  {
    title: "no owner",
    patch: { op: "remove", path: "/metadata/ownerReferences" },
    field: "metadata.ownerReferences",
  },
];

if (reason !== undefined)
  describe("pods among faults", () => {
    it("aren't opened", (context) => context.skip(`host: ${reason}`));
  });
else
  describe("pods among faults", { timeout: 600_000 }, () => {
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

    it.each(isThorough ? changes : changes.slice(0, 1))(
      "are refused and gone where a webhook gives them $title",
      async ({ patch, field }) => {
        const stop = await startWebhook(namespace, [patch]);
        try {
          // The API server learns of a webhook some time after it has accepted it.
          await expect
            .poll(async () => {
              const opened = await backend.open(specOf(), scope).catch((error: Error) => error);
              if (opened instanceof Error) return opened.message;
              await opened.close();
              return "";
            }, patience)
            .toContain(`The cluster changed the pod: ${field}`);
          expect(await namespace.pods()).toEqual([]);
        } finally {
          await stop();
        }
      },
    );

    it("that no node takes are what a probe says that it waited for, once its time is over", async () => {
      const nowhere = namespace.backend({ nodeSelector: { "example.org/nowhere": "yes" } });
      const findings = await nowhere.probe(AbortSignal.timeout(5_000), ["environment.named-only"]);
      expect(findings).toEqual([
        {
          capability: "environment.named-only",
          proven: false,
          reason: expect.stringContaining("no node takes the pod"),
          fix: expect.stringContaining("add a node"),
        },
      ]);
      await expect.poll(() => namespace.pods(), patience).toEqual([]);
      await nowhere.close();
    });

    if (!isThorough) return;

    it("end by themselves where their runner was killed, and another runner removes them", async () => {
      const settings = {
        ...namespace.settings,
        hostUsers: "require",
        bridge: { folder: "/ambit", heartbeatTimeoutMs: 4_000, orphanTimeoutMs: 6_000 },
      };
      const program = fileURLToPath(new URL("support/killed-runner.mjs", import.meta.url));
      const child = spawn(process.execPath, [program, JSON.stringify(settings)], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      const [line] = await once(createInterface(child.stdout), "line");
      const [, name = ""] = String(line).split("/");
      expect(await namespace.pods()).toEqual([name]);
      child.kill("SIGKILL");
      const phase = async () => {
        const pod = await namespace.request("GET", `/api/v1/namespaces/${namespace.name}/pods/${name}`);
        return Object(pod.status).phase;
      };
      // The guest daemon, then the holder: nobody asked the API server for it.
      await expect.poll(phase, patience).toBe("Succeeded");
      // A new runner of the same host sees that its owner is dead.
      const other = namespace.backend({ hostUsers: "require" });
      await other.probe(AbortSignal.timeout(240_000), ["environment.named-only"]);
      await expect.poll(() => namespace.pods(), patience).toEqual([]);
      await other.close();
    });

    it("fail with the reason where they are evicted", async () => {
      const failures: string[] = [];
      const sandbox = await backend.open(
        specOf(closed, { onFailure: ({ message }) => failures.push(message) }),
        scope,
      );
      const [name] = await namespace.pods();
      await namespace.request("POST", `/api/v1/namespaces/${namespace.name}/pods/${name}/eviction`, {
        apiVersion: "policy/v1",
        kind: "Eviction",
        metadata: { name, namespace: namespace.name },
      });
      await expect.poll(() => failures.length, patience).toBeGreaterThan(0);
      expect(failures[0]).toMatch(/the cluster ends the pod|deletes the pod|was deleted|first process ended/);
      await sandbox.close();
      expect(await namespace.pods()).toEqual([]);
    });

    it("aren't said to be gone while their node is away", async () => {
      const hasty = namespace.backend({ hostUsers: "require", closeTimeoutMs: 3_000 });
      const sandbox = await hasty.open(specOf(), scope);
      await namespace.own.signal("kubelet", "STOP");
      try {
        await expect(sandbox.close()).rejects.toThrow(/isn't confirmed after 3000 ms.*node may be away/);
      } finally {
        await namespace.own.signal("kubelet", "CONT");
      }
      await expect.poll(() => namespace.pods(), patience).toEqual([]);
      await hasty.close();
    });

    it.each(["etcd", "kubelet"] as const)("work on while %s is stopped", async (program) => {
      const sandbox = await backend.open(specOf(), scope);
      const script = "for n in $(seq 400); do echo $n; sleep 0.05; done";
      const running = runToEnd(sandbox, { argv: ["/bin/sh", "-c", script], env: {}, signal: scope.signal });
      await after(1_000);
      await namespace.own.signal(program, "STOP");
      await after(10_000);
      await namespace.own.signal(program, "CONT");
      const { stdout } = await running;
      expect(stdout.trim().split("\n").map(Number)).toEqual(Array.from({ length: 400 }, (_, n) => n + 1));
      await sandbox.close();
    });

    it("are forty at once, each its own, and none is left", async () => {
      const small = namespace.backend({
        hostUsers: "require",
        memoryMb: 256,
        openTimeoutMs: 500_000,
        // Forty guest daemons start on one node with the processors of this machine.
        bridge: { folder: "/ambit", heartbeatTimeoutMs: 180_000, orphanTimeoutMs: 600_000 },
      });
      const names = await Promise.all(
        Array.from({ length: 40 }, async (_, index) => {
          const sandbox = await small.open(specOf(), scope);
          const said = await runToEnd(sandbox, {
            argv: ["/bin/echo", `${index}`],
            env: {},
            signal: scope.signal,
          });
          expect(said.stdout).toBe(`${index}\n`);
          await sandbox.close();
          return sandbox.evidence["kubernetes.pod"];
        }),
      );
      expect(new Set(names).size).toBe(40);
      expect(await namespace.pods()).toEqual([]);
      await small.close();
    });

    it("are proven with a warning that names what a runner's account may do too much", async () => {
      const file = await accountWith(namespace, [
        { apiGroups: [""], resources: ["secrets"], verbs: ["get"] },
      ]);
      const other = namespace.backend({ hostUsers: "require", kubeconfig: file });
      const [finding] = await other.probe(AbortSignal.timeout(240_000), ["process.contained"]);
      expect(finding).toMatchObject({
        proven: true,
        warning: expect.stringMatching(/may do more than sandboxes need \(secrets: get\).*role.yaml/),
      });
      await other.close();
    });
  });
