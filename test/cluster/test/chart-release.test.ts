import { postgresIsMissing } from "@ambit/test-postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ApiRefused, ownUnavailableReason, testCluster } from "../src/index.js";
import { Release, section, whyNoHelm } from "./support/release.js";
import { importRunnerImage } from "./support/runner-image.js";
import { Caller, type Result, resultOf } from "./support/runs.js";

const reason = (await ownUnavailableReason()) ?? postgresIsMissing();
const cluster = reason === undefined ? (await testCluster()).own : undefined;
const why = reason ?? (cluster === undefined ? "no cluster" : whyNoHelm(cluster));

/** With two runners, each of which probes the cluster, and what takes minutes. */
const isThorough = process.env.AMBIT_SOAK !== undefined;

if (why !== undefined)
  describe("a release of the chart", () => {
    it("isn't installed", (context) => context.skip(`host: ${why}`));
  });
else
  describe("a release of the chart", { timeout: 900_000 }, () => {
    let release: Release;
    let caller: Caller;
    let values: ReturnType<Release["values"]>;
    beforeAll(async () => {
      release = await Release.prepare();
      caller = new Caller(release.token);
      await importRunnerImage(release.own);
      const { image } = await testCluster();
      values = release.values({ runner: { replicas: isThorough ? 2 : 1 }, sandboxes: { image } });
      await release.install(values);
      await release.rolledOut();
      // Most of it is the installation of the runner's packages, by npm.
    }, 900_000);
    afterAll(() => release?.close());

    /** A URL that leads to the chart's Service, as it is now. */
    const service = async () => release.reach((await release.runners()).map(({ address }) => address));

    it("runs an agent in a pod, through its Service, and leaves no pod", async () => {
      const result = await caller.run(await service(), "say hello");
      expect(result).toMatchObject({ ok: true, output: "hello" });
      expect(result.receipt?.evidence).toMatchObject({ "kubernetes.shape": "user-namespace" });
      await expect.poll(() => release.pods()).not.toContain(podOf(result));
    });

    it("has runners without rights on their node", async () => {
      const script =
        "id -u; id -g; grep -E '^(CapBnd|NoNewPrivs|Seccomp):' /proc/self/status; touch /x || echo read-only";
      const said = await release.kubectl([
        ...["exec", "--namespace", release.namespace, "deployment/ambit", "--", "sh", "-c", script],
      ]);
      expect(said.text).toMatch(
        /^10001\n10001\nCapBnd:\s+0{16}\nNoNewPrivs:\s+1\nSeccomp:\s+2\n[\s\S]*read-only/,
      );
    });

    const sandbox = { name: "c", image: "i", imagePullPolicy: "Never" };
    const withRights = (add: string[]) => ({ ...sandbox, securityContext: { capabilities: { add } } });
    it.each([
      { title: "SYS_ADMIN", spec: { containers: [withRights(["SYS_ADMIN"])] }, says: /need hostUsers false/ },
      {
        title: "SYS_PTRACE in a user namespace",
        spec: { hostUsers: false, containers: [withRights(["SYS_PTRACE"])] },
        says: /other capabilities aren't allowed/,
      },
      {
        title: "all rights",
        spec: { containers: [{ ...sandbox, securityContext: { privileged: true } }] },
        says: /privileged/,
      },
      {
        title: "a folder of the node",
        spec: { containers: [sandbox], volumes: [{ name: "v", hostPath: { path: "/" } }] },
        says: /only emptyDir and downwardAPI/,
      },
      {
        title: "the node's network",
        spec: { containers: [sandbox], hostNetwork: true },
        says: /node's namespaces/,
      },
      {
        title: "a port of the node",
        spec: { containers: [{ ...sandbox, ports: [{ containerPort: 1, hostPort: 1 }] }] },
        says: /node's namespaces and ports/,
      },
      {
        title: "a secret as a variable",
        spec: { containers: [{ ...sandbox, envFrom: [{ secretRef: { name: "registry" } }] }] },
        says: /can't be variables/,
      },
      {
        title: "no filter of system calls",
        spec: { securityContext: { seccompProfile: { type: "Unconfined" } }, containers: [sandbox] },
        says: /Unconfined/,
      },
      {
        title: "the rights that SELinux gives to the node's own programs",
        spec: { securityContext: { seLinuxOptions: { type: "spc_t" } }, containers: [sandbox] },
        says: /SELinux/,
      },
      {
        title: "a container with another user of SELinux",
        spec: {
          containers: [{ ...sandbox, securityContext: { seLinuxOptions: { user: "system_u" } } }],
        },
        says: /SELinux/,
      },
      {
        title: "a process of a Windows node",
        spec: {
          hostNetwork: true,
          securityContext: { windowsOptions: { hostProcess: true } },
          containers: [sandbox],
        },
        says: /Windows/,
      },
      {
        title: "requests of the node to a host beyond its policy",
        spec: { containers: [{ ...sandbox, livenessProbe: { httpGet: { host: "192.0.2.1", port: 80 } } }] },
        says: /can't name a host/,
      },
      {
        title: "a connection of the node to such a host",
        spec: {
          containers: [
            { ...sandbox, lifecycle: { postStart: { httpGet: { host: "192.0.2.1", port: 80 } } } },
          ],
        },
        says: /can't name a host/,
      },
      {
        title: "an account's token",
        spec: { automountServiceAccountToken: true, containers: [sandbox] },
        says: /only emptyDir and downwardAPI/,
      },
    ])("refuses a sandbox with $title", async ({ spec, says }) => {
      const api = release.own.api();
      const create = (pod: object) =>
        api
          .request("POST", `/api/v1/namespaces/${release.sandboxes}/pods?dryRun=All`, {
            metadata: { name: "p" },
            spec: { automountServiceAccountToken: false, ...pod },
          })
          .then(
            () => "accepted",
            (error: unknown) => (error instanceof ApiRefused ? error.message : "failed"),
          );
      try {
        // The policy counts some moments after it was created.
        await expect.poll(() => create(spec)).toMatch(says);
        expect(await create({ containers: [sandbox] })).toBe("accepted");
        const own = { hostUsers: false, containers: [withRights(["SYS_ADMIN", "NET_ADMIN", "CHOWN"])] };
        expect(await create(own)).toBe("accepted");
      } finally {
        api.close();
      }
    });

    it("has an admission policy whose expressions the API server understands", async () => {
      const path = `/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/ambit-${release.sandboxes}`;
      const api = release.own.api();
      const checked = async () => section((await api.request("GET", path)).status).typeChecking;
      await expect.poll(checked).toBeDefined();
      expect(section(await checked()).expressionWarnings).toBeUndefined();
      api.close();
    });

    it("lets nothing of the sandboxes' namespace reach a runner", async () => {
      const { image } = await testCluster();
      const [runner] = await release.runners();
      const elsewhere = await release.own.createNamespace();
      const script = "import socket, sys; socket.create_connection((sys.argv[1], 8765), 3)";
      const dial = async (namespace: string) => {
        const container = { ...sandbox, image, command: ["python3", "-c", script, runner?.address] };
        const api = release.own.api();
        const pods = `/api/v1/namespaces/${namespace}/pods`;
        await api.request("POST", pods, {
          metadata: { name: "dialer", labels: { "ambit-network": "open" } },
          spec: {
            automountServiceAccountToken: false,
            restartPolicy: "Never",
            containers: [container],
          },
        });
        const phase = async () => section((await api.request("GET", `${pods}/dialer`)).status).phase;
        await expect.poll(phase).toMatch(/Succeeded|Failed/);
        const ended = await phase();
        await api.request("DELETE", `${pods}/dialer?gracePeriodSeconds=0`);
        api.close();
        return ended;
      };
      expect(await Promise.all([dial(release.sandboxes), dial(elsewhere.name)])).toEqual([
        "Failed",
        "Succeeded",
      ]);
      await elsewhere.remove();
    });

    if (isThorough) {
      it("carries a run through an upgrade, and another runner goes on with its events", async () => {
        const [first] = await release.runners();
        if (first === undefined) throw new Error("no runner is ready");
        const url = await release.reach([first.address]);
        const runId = await caller.begin(url, "say one\nsleep 20000\nsay two");
        const before = await caller.follow(url, runId, 0, /"one/);
        const changed = { ...values, config: { ...section(values.config), limits: { concurrentRuns: 50 } } };
        await release.install(changed);
        const others = async () =>
          (await release.runners()).filter(({ name }) => !name.startsWith(revisionOf(first.name)));
        await expect.poll(async () => (await others()).length, { timeout: 120_000 }).toBeGreaterThan(0);
        const [other] = await others();
        const rest = await caller.follow(
          await release.reach([other?.address ?? ""]),
          runId,
          before.at(-1)?.id ?? 0,
        );
        expect([...before, ...rest].map(({ id }) => id)).toEqual(
          [...before, ...rest].map((_, index) => index + 1),
        );
        expect(resultOf(rest)).toMatchObject({ ok: true, output: "one\ntwo" });
        await release.rolledOut();
        expect((await release.runners()).map(({ name }) => revisionOf(name))).not.toContain(
          revisionOf(first.name),
        );
        await expect.poll(() => release.pods()).not.toContain(podOf(resultOf(rest)));
      });

      it("ends the run of a runner that is killed, with all that was sent of it", async () => {
        const [killed, other] = await release.runners();
        if (killed === undefined || other === undefined) throw new Error("two runners aren't ready");
        const url = await release.reach([killed.address]);
        const runId = await caller.begin(url, "say one\nsleep 600000");
        const before = await caller.follow(url, runId, 0, /"one/);
        await release.kubectl([
          ...["delete", "pod", killed.name, "--namespace", release.namespace, "--force", "--grace-period=0"],
        ]);
        const records = await caller.follow(await release.reach([other.address]), runId, 0);
        expect(records.slice(0, before.length)).toEqual(before);
        expect(resultOf(records)).toMatchObject({
          ok: false,
          failure: { code: "runner_lost", retryable: true },
        });
        await release.rolledOut();
        expect(await caller.run(await service(), "say again")).toMatchObject({ ok: true, output: "again" });
      });

      it("goes back to the revision before", async () => {
        const configuration = async () =>
          JSON.stringify(await release.list(`/api/v1/namespaces/${release.namespace}/configmaps`));
        expect(await configuration()).toContain("concurrentRuns");
        await release.rollback();
        await release.rolledOut();
        expect(await configuration()).not.toContain("concurrentRuns");
        expect(await caller.run(await service(), "say back")).toMatchObject({ ok: true, output: "back" });
      });

      it("has a doctor that names the Role where a right is missing", async () => {
        const path = `/apis/rbac.authorization.k8s.io/v1/namespaces/${release.sandboxes}/roles/ambit`;
        const api = release.own.api();
        const role = await api.request("GET", path);
        const rules = (Array.isArray(role.rules) ? role.rules : []).filter(
          ({ resources }) => !resources.includes("pods/exec"),
        );
        await api.request("PATCH", path, { rules });
        const doctor = ["node", "/opt/ambit/node_modules/ambit/bin/ambit.mjs", "doctor"];
        const said = await release.kubectl([
          ...["exec", "--namespace", release.namespace, "deployment/ambit", "--", ...doctor],
        ]);
        expect(said.text).toMatch(/pods\/exec: create, get[\s\S]*fix {2}.*templates\/sandboxes\/role\.yaml/);
        await api.request("PATCH", path, { rules: role.rules });
        api.close();
      });
    }

    it("is uninstalled with nothing left", async () => {
      await release.uninstall();
      const kinds =
        "namespaces,pods,deployments,replicasets,services,endpointslices,configmaps,serviceaccounts,roles,rolebindings,networkpolicies,resourcequotas,poddisruptionbudgets,validatingadmissionpolicies,validatingadmissionpolicybindings,leases,secrets";
      const left = async (selector: string) =>
        (
          await release.kubectl([
            "get",
            kinds,
            "--all-namespaces",
            "--selector",
            selector,
            "--output",
            "name",
          ])
        ).text;
      await expect.poll(() => left("app.kubernetes.io/instance=ambit")).toMatch(/^(No resources found)?\s*$/);
      // Helm's own record, and the plugin's leases.
      expect(await left("owner=helm")).toMatch(/^(No resources found)?\s*$/);
      expect((await release.kubectl(["get", "namespace", release.sandboxes])).text).toContain("NotFound");
      expect(await release.pods(release.namespace)).toEqual([]);
    });
  });

/** The name of a run's pod, which its receipt has. */
function podOf({ receipt }: Result): string {
  const name = /^[^/]+\/(.+)$/.exec(String(receipt?.evidence["kubernetes.pod"]))?.[1];
  if (name === undefined) throw new Error("the receipt names no pod");
  return name;
}

/** A pod's name without what tells it from others of its revision. */
const revisionOf = (pod: string) => pod.slice(0, pod.lastIndexOf("-"));
