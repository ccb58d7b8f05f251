import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { describe, expect, it } from "vitest";
import {
  type OwnCluster,
  ownUnavailableReason,
  type PolicyBehaviour,
  removeLeftovers,
  testCluster,
} from "../src/index.js";

/** Dials the targets in turn from its first moment, and prints each change of what answers. */
const dialer = `
import socket, sys, time
targets = [(host, int(port)) for host, port in (one.rsplit(":", 1) for one in sys.argv[1:])]
last = None
while True:
    seen = ""
    for target in targets:
        with socket.socket() as s:
            s.settimeout(2)
            seen += "1" if s.connect_ex(target) == 0 else "0"
    if seen != last:
        print(seen, flush=True)
        last = seen
    time.sleep(0.02)
`;

const denyAll = { podSelector: {}, policyTypes: ["Ingress", "Egress"] };

/** A namespace with policies and a pod that dials; `said` is what it has seen so far, one character per target. */
async function dialing(own: OwnCluster, policy: PolicyBehaviour, targets: readonly string[], denied = true) {
  const { image } = await testCluster();
  const namespace = await own.createNamespace({}, policy);
  const api = own.api();
  const add = (name: string, spec: object) =>
    api.request("POST", `/apis/networking.k8s.io/v1/namespaces/${namespace.name}/networkpolicies`, {
      metadata: { name },
      spec,
    });
  if (denied) await add("deny-all", denyAll);
  const container = { name: "dialer", image, imagePullPolicy: "Never" };
  await api.request("POST", `/api/v1/namespaces/${namespace.name}/pods`, {
    metadata: { name: "dialer" },
    spec: {
      terminationGracePeriodSeconds: 1,
      automountServiceAccountToken: false,
      containers: [{ ...container, command: ["python3", "-c", dialer, ...targets] }],
    },
  });
  return {
    allowAll: () => add("foreign", { podSelector: {}, policyTypes: ["Egress"], egress: [{}] }),
    said: async () => {
      const log = await api
        .request("GET", `/api/v1/namespaces/${namespace.name}/pods/dialer/log`)
        .catch(() => ({ answer: "" }));
      return String(log.answer ?? "")
        .trim()
        .split("\n");
    },
    end: async () => {
      api.close();
      await namespace.remove();
    },
  };
}

describe("the tests' cluster", () => {
  it("enforces policies at once, late, or not at all, and adds them up", async (context) => {
    const reason = await ownUnavailableReason();
    if (reason !== undefined) context.skip(`host: ${reason}`);
    const { own } = await testCluster();
    if (own === undefined) throw new Error("not the tests' own");
    const listener = createServer((socket) => socket.destroy()).listen(0, own.place.hostAddress);
    await once(listener, "listening");
    const address = listener.address();
    if (address === null || typeof address === "string") throw new Error("it doesn't listen");
    // Beyond the cluster, the node's own port, this host.
    const targets = [
      "192.0.2.1:443",
      `${own.place.address}:10250`,
      `${own.place.hostAddress}:${address.port}`,
    ];
    const [open, closed, late, absent, node] = await Promise.all([
      dialing(own, {}, targets, false),
      dialing(own, {}, targets),
      dialing(own, { delayMs: 8000 }, targets),
      dialing(own, { enforced: false }, targets),
      dialing(own, { nodeIsOpen: true }, targets),
    ]);
    try {
      await expect.poll(() => open.said()).toEqual(["111"]);
      await expect.poll(() => closed.said()).toEqual(["000"]);
      await expect.poll(() => absent.said()).toEqual(["111"]);
      await expect.poll(() => node.said()).toEqual(["010"]);
      await expect.poll(async () => (await late.said()).at(-1)).toBe("000");
      expect((await late.said())[0]).toBe("111");
      await closed.allowAll();
      await expect.poll(async () => (await closed.said()).at(-1)).toBe("111");
    } finally {
      listener.close();
      await Promise.all([open, closed, late, absent, node].map((one) => one.end()));
    }
  });

  it("ends with its owner, beside another one, and the next start removes what is left", async (context) => {
    const reason = await ownUnavailableReason();
    if (reason !== undefined) context.skip(`host: ${reason}`);
    const { own } = await testCluster();
    const child = spawn(process.execPath, ["--input-type=module", "--eval", owner], {
      cwd: import.meta.dirname,
      stdio: ["ignore", "pipe", "inherit"],
    });
    const exited = once(child, "exit");
    const [line] = await once(createInterface(child.stdout), "line");
    const { folder, name, link } = JSON.parse(line);
    expect(processesOf(folder)).toBeGreaterThan(6);
    expect(existsSync(`/sys/class/net/${link}`)).toBe(true);
    child.kill("SIGKILL");
    await exited;
    await expect.poll(() => processesOf(folder)).toBe(0);
    await expect.poll(() => existsSync(`/sys/class/net/${link}`)).toBe(false);
    expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(folder);
    await removeLeftovers();
    expect(existsSync(folder)).toBe(false);
    expect(cgroupsOf(name)).toEqual([]);
    // The shared one lives on.
    const api = own?.api();
    expect(await api?.request("GET", "/readyz")).toEqual({ answer: "ok" });
    api?.close();
  });
});

/** Starts a cluster with a pod in another process, and prints where it is. */
const owner = `
  import { copyPrograms, OwnCluster, startCluster } from "../dist/index.js";
  import { join } from "node:path";
  const { place, ready } = await startCluster({ sandboxImage: false });
  await ready;
  const own = new OwnCluster(place);
  const folder = join(place.folder, "root");
  await copyPrograms(["/bin/sleep"], folder);
  const image = "ambit.local/sleep:1";
  await own.importImage({ name: image, root: { folder }, command: ["/bin/sleep", "infinity"] });
  const { name } = await own.createNamespace();
  const api = own.api();
  const container = { name: "sleep", image, imagePullPolicy: "Never" };
  await api.request("POST", "/api/v1/namespaces/" + name + "/pods", { metadata: { name: "p" }, spec: { containers: [container] } });
  const phase = async () => (await api.request("GET", "/api/v1/namespaces/" + name + "/pods/p")).status.phase;
  while ((await phase()) !== "Running") await new Promise((resolve) => setTimeout(resolve, 50));
  console.log(JSON.stringify({ ...place, link: "ambit" + process.pid + "n" }));
  process.stdin.resume();
  setInterval(() => {}, 1000);
`;

/** Processes whose command line names the folder. */
function processesOf(folder: string): number {
  return readdirSync("/proc").filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      return readFileSync(`/proc/${name}/cmdline`, "utf8").includes(folder);
    } catch {
      return false;
    }
  }).length;
}

function cgroupsOf(name: string): string[] {
  const roots = readdirSync("/sys/fs/cgroup", { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return ["", ...roots.map((entry) => `/${entry.name}`)]
    .map((root) => `/sys/fs/cgroup${root}/${name}`)
    .filter((path) => existsSync(path));
}
