/**
 * A policy controller for tests, by the node's firewall: `node main.js SERVER KEYS`. A namespace's labels say how it differs
 * from one that enforces everything at once. This package's README says what it replaces.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { ClusterApi } from "../api.js";
import { PodAddresses } from "./addresses.js";
import { ContainerStarts } from "./container-starts.js";
import { namespaceSchema, type Pod, podSchema, policySchema } from "./objects.js";
import { ObjectsOf } from "./objects-of.js";
import { chains, firewall } from "./rules.js";

const execute = promisify(execFile);

/** Labels of a namespace. */
const label = {
  /** `absent`: nothing is enforced there, as without a controller. */
  mode: "tests.ambit/policy",
  /** Milliseconds after the start of a pod's first container, from which its policies are enforced. */
  delayMs: "tests.ambit/policy-delay-ms",
  /** `open`: its pods reach the node's own ports whatever a policy says, as with most controllers. */
  node: "tests.ambit/policy-node",
  /** `tcp`: what isn't TCP passes whatever a policy says. */
  protocols: "tests.ambit/policy-protocols",
  /** `open`: its pods reach each other whatever a policy says. */
  neighbours: "tests.ambit/policy-neighbours",
} as const;

const [server = "", keys = ""] = process.argv.slice(2);
const api = new ClusterApi(server, keys, "policy-controller");

const pods = new ObjectsOf(api, "/api/v1/pods", podSchema, () => update());
const namespaces = new ObjectsOf(api, "/api/v1/namespaces", namespaceSchema, () => update());
const policies = new ObjectsOf(api, "/apis/networking.k8s.io/v1/networkpolicies", policySchema, () =>
  update(),
);

const delayOf = (namespace: string) => {
  const found = namespaces.all.find(({ metadata }) => metadata.name === namespace);
  return Number(found?.metadata.labels[label.delayMs] ?? 0);
};

/** Pods with a delay, once it is over. */
const due = new Set<string>();
const addresses = new PodAddresses(() => update());
const containers = new ContainerStarts((namespace, name) => {
  setTimeout(() => {
    due.add(`${namespace}/${name}`);
    update();
  }, delayOf(namespace));
});

function rules(): string {
  const labels = new Map(namespaces.all.map(({ metadata }) => [metadata.name, metadata.labels]));
  const everyPod = addresses.all.flatMap(({ name, namespace, address }): Pod[] => {
    const found = pods.all.find(({ metadata }) => metadata.name === name && metadata.namespace === namespace);
    return found === undefined ? [] : [{ name, namespace, address, labels: found.metadata.labels }];
  });
  return firewall({
    pods: everyPod.filter(
      ({ namespace, name }) =>
        (delayOf(namespace) === 0 || due.has(`${namespace}/${name}`)) &&
        labels.get(namespace)?.[label.mode] !== "absent",
    ),
    everyPod,
    policies: policies.all,
    namespaces: labels,
    nodeIsOpen: (namespace) => labels.get(namespace)?.[label.node] === "open",
    isOnlyTcp: (namespace) => labels.get(namespace)?.[label.protocols] === "tcp",
    neighboursAreOpen: (namespace) => labels.get(namespace)?.[label.neighbours] === "open",
  });
}

let applied = "";
let isWanted = false;
let isApplying = false;

/** One change of the firewall at a time; those that come meanwhile are made together. */
function update(): void {
  isWanted = true;
  if (!isApplying) void applyAll();
}

async function applyAll(): Promise<void> {
  isApplying = true;
  while (isWanted) {
    isWanted = false;
    try {
      const wanted = rules();
      if (wanted === applied) continue;
      await restore(wanted);
      applied = wanted;
    } catch (error) {
      // What it doesn't support changes nothing, and must not end it.
      console.error(error);
    }
  }
  isApplying = false;
}

async function restore(input: string): Promise<void> {
  const child = spawn("iptables-restore", ["--noflush", "--wait"], { stdio: ["pipe", "ignore", "pipe"] });
  child.stdin.end(input);
  const [said, [code]] = await Promise.all([text(child.stderr), once(child, "close")]);
  if (code !== 0) throw new Error(`iptables-restore: ${said}\n${input}`);
}

await restore(
  firewall({ pods: [], everyPod: [], policies: [], namespaces: new Map(), nodeIsOpen: () => false }),
);
for (const [chain, own] of [
  ["FORWARD", chains.forward],
  ["INPUT", chains.input],
] as const) {
  await execute("iptables", ["--wait", "-C", chain, "-j", own]).catch(() =>
    execute("iptables", ["--wait", "-I", chain, "-j", own]),
  );
}
mkdirSync("/var/lib/cni/results", { recursive: true });
addresses.start();
await containers.start();
await Promise.all([pods.follow(), namespaces.follow(), policies.follow()]);
