/** What a cluster enforces: the standard probe in pods of it, the servers that a policy must close, and the gate. */

import { randomUUID } from "node:crypto";
import { probeSandboxes } from "@ambit/attacks/standard-probe";
import {
  type DialTarget,
  NotProven,
  probeSpec,
  reachedTargets,
  refusedByProfile,
  runToEnd,
} from "@ambit/backend-kit";
import type { RemoteSandbox } from "@ambit/bridge";
import {
  type Capability,
  type Finding,
  messageOf,
  type NetworkRule,
  SandboxFailed,
  type SandboxSpec,
  type Scope,
} from "@ambit/core/plugin";
import { imageStore, makeAuthority } from "@ambit/egress/credentials";
import { z } from "zod";
import { fixFor } from "./api/server.js";
import { isNetwork } from "./claims.js";
import { NetworkOpen, policyFix, reviewPolicies, whyNotClosed } from "./network/policies.js";
import type { ClusterAccess, PodOverrides } from "./open/pods.js";
import { userNamespaceFix } from "./pod/cluster.js";
import { daemonCapabilities, networkLabel } from "./pod/manifest.js";
import { deleted, PodMachine } from "./pod/pod-machine.js";
import { rightsIn } from "./rights.js";

/** What the runtime covers or mounts read-only unless a pod asks for less. A kernel may lack some. */
const kernelPaths = {
  covered: ["/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/scsi", "/proc/timer_list", "/sys/firmware"],
  readOnly: ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger", "/sys"],
};

/** Tries every claim in pods of the cluster, next to a control. */
export async function probeCluster(
  access: ClusterAccess,
  open: OpenPod,
  signal: AbortSignal,
  claims: readonly Capability[],
): Promise<readonly Finding[]> {
  access.forget();
  const rights = await rightsIn(access.cluster, access.config.egress, signal);
  if (rights !== undefined && rights.missing.length > 0) {
    throw new SandboxFailed(
      `The runner's account may not do all that sandboxes need in the namespace ${access.config.namespace} (${rights.missing.join("; ")})`,
    );
  }
  const network =
    claims.some(isNetwork) || claims.includes("secrets.hidden")
      ? await findTargets(access, open, signal)
      : undefined;
  const isClosed = network === undefined || network.whyOpen === undefined;
  // A credential stays outside only if the proxy is the only way out.
  const needsClosed = (claim: Capability) => isNetwork(claim) || claim === "secrets.hidden";
  const provableClaims = isClosed ? claims : claims.filter((claim) => !needsClosed(claim));
  const findings = await probeSandboxes(standardProbe(access, open, provableClaims), signal);
  const refused = claims.flatMap((claim) =>
    provableClaims.includes(claim) || network?.whyOpen === undefined
      ? []
      : [{ capability: claim, proven: false as const, ...network.whyOpen }],
  );
  const tooMany = rights?.tooMany ?? [];
  const shown = await withGate(access, open, signal, [...findings, ...refused]);
  return shown.map((finding) =>
    finding.proven && finding.capability === "process.contained" && tooMany.length > 0
      ? { ...finding, warning: rightsWarning(tooMany) }
      : finding,
  );
}

/** Where sessions have a gate, what it keeps is shown with one too. */
async function withGate(
  { config }: ClusterAccess,
  open: OpenPod,
  signal: AbortSignal,
  findings: readonly Finding[],
): Promise<readonly Finding[]> {
  const isKept = ({ capability, proven }: Finding) => proven && keptByGate.includes(capability);
  if (config.egress !== "gate" || !findings.some(isKept)) return findings;
  const why = await whyGateFails(open, config.bridge.node, signal);
  if (why === undefined) return findings;
  return findings.map((finding) =>
    isKept(finding) ? { capability: finding.capability, proven: false as const, ...why } : finding,
  );
}

const rightsWarning = (tooMany: readonly string[]) =>
  `the runner's account may do more than sandboxes need (${tooMany.join("; ")}): give it only the Role of deploy/chart (templates/sandboxes/role.yaml)`;

function standardProbe(access: ClusterAccess, open: OpenPod, claims: readonly Capability[]) {
  const { config, targets } = access;
  // Every pod has tried those over UDP before it was handed over.
  const beyond = targets.filter(({ protocol }) => protocol !== "udp");
  return {
    claims,
    // The servers that it lists are on the runner's own loopback, which no gate reaches. A gate decides by the same code.
    open: ((spec, scope, options) => open(spec, scope, { ...options, egress: "bridge" })) satisfies OpenPod,
    makeAuthority,
    kernelPaths,
    node: config.bridge.node,
    bounding: daemonCapabilities,
    refusedCalls: refusedByProfile,
    closedPaths: [`${config.bridge.folder}/put`, `${imageStore}/put`],
    ...(access.podShape === "baseline" ? { hasPlainScratch: true, beyond } : {}),
    perToolFix: `${access.whyBaseline ?? "the pod's node doesn't hide processes"}: ${userNamespaceFix}`,
    // What a pod reaches although a policy should close it is the network's.
    fixFor: (error: unknown, capability: Capability) =>
      access.podShape === "baseline" && isNetwork(capability) && error instanceof NotProven
        ? policyFix
        : fixFor(error),
  };
}

interface NetworkSeen {
  /** Why policies alone don't close a pod's network, where nothing else does. */
  readonly whyOpen: { readonly reason: string; readonly fix: string } | undefined;
}

/** Opens a pod without a policy, and tries from it what a pod with one must not reach. */
async function findTargets(access: ClusterAccess, open: OpenPod, signal: AbortSignal): Promise<NetworkSeen> {
  const { config } = access;
  const control = await open(probeSpec({}), { signal, defer: () => undefined }, {});
  try {
    // The first pod has shown which shape the nodes have.
    if (access.podShape === "user-namespace") return { whyOpen: undefined };
    const policies = await access.policies(signal);
    const whyOpen = whyNotClosed(
      reviewPolicies(policies, { ambit: "sandbox", [networkLabel]: "closed" }),
      config.namespace,
    );
    if (whyOpen !== undefined) return { whyOpen };
    const nearby = await around(access, control, signal);
    const { node } = config.bridge;
    access.targets = await reachedTargets(control, { node, targets: nearby, signal });
  } finally {
    await control.close();
  }
  if (access.targets.length === 0) {
    return {
      whyOpen: {
        reason:
          "a pod without a policy reaches nothing that was tried, so nothing can be shown of one with a policy",
        fix: "set sandbox-kubernetes' targets to addresses that pods reach, such as your model provider's",
      },
    };
  }
  return { whyOpen: await whyLimitedOpen(open, signal) };
}

/** A pod tries its own network before anything runs in it. */
async function whyLimitedOpen(open: OpenPod, signal: AbortSignal): Promise<NetworkSeen["whyOpen"]> {
  const spec = probeSpec({ network: { mode: "off", rules: [] } });
  try {
    await (await open(spec, { signal, defer: () => undefined }, {})).close();
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    return error instanceof NetworkOpen
      ? { reason: error.reason, fix: error.fix }
      : { reason: messageOf(error), fix: fixFor(error) };
  }
}

async function around(
  { cluster, config }: ClusterAccess,
  control: RemoteSandbox,
  signal: AbortSignal,
): Promise<readonly DialTarget[]> {
  const [, name = ""] = String(control.evidence["kubernetes.pod"]).split("/");
  const pod = await cluster.pod(name, signal);
  if (pod === undefined) throw deleted();
  const machine = new PodMachine(cluster, config, name, pod.metadata.uid);
  const read = async (...argv: readonly string[]) => (await machine.run(argv, signal)).output;
  const [environment, resolvers, routes, routes6] = await Promise.all([
    read("env"),
    read("cat", "/etc/resolv.conf"),
    read("cat", "/proc/net/route"),
    // A kernel without IPv6 has none.
    read("/bin/sh", "-c", "cat /proc/net/ipv6_route 2> /dev/null || true"),
  ]);
  const { hostIP, hostIPs } = pod.status;
  const nodeAddresses = [
    ...new Set([...(hostIP === undefined ? [] : [hostIP]), ...hostIPs.map(({ ip }) => ip)]),
  ];
  const seen = { environment, resolvers, routes, routes6, nodeAddresses };
  return candidates({ server: cluster.api.server.url, ...seen }, config.targets);
}

export type OpenPod = (spec: SandboxSpec, scope: Scope, options: PodOverrides) => Promise<RemoteSandbox>;

/** What a gate keeps, besides the proxy's rules. */
export const keptByGate: readonly Capability[] = [
  "network.allow-cidr",
  "network.allow-host",
  "secrets.hidden",
];

/** Two servers that say the same. */
const serverProgram = `
const http = require("node:http"), says = process.argv[1];
const listening = () => new Promise((go) => { const server = http.createServer((_, response) => response.end(says)).listen(0, () => go(server.address().port)); });
Promise.all([listening(), listening()]).then((ports) => {
  const found = Object.values(require("node:os").networkInterfaces()).flat().filter((one) => !one.internal);
  const { address } = found.find(({ family }) => family === "IPv4") ?? found[0];
  console.log(JSON.stringify({ address, ports }));
});`;
const serversSchema = z.object({ address: z.string(), ports: z.tuple([z.int(), z.int()]) });

/** Asks both servers through the sandbox's proxy, and dials the first one itself. */
const clientProgram = `
const { address, ports } = JSON.parse(process.argv[1]), proxy = new URL(process.env.HTTP_PROXY);
const host = address.includes(":") ? "[" + address + "]" : address;
const ask = (port) => new Promise((go) => {
  const asked = require("node:http").request({ host: proxy.hostname, port: proxy.port, path: "http://" + host + ":" + port + "/",
    headers: { host: host + ":" + port }, agent: false, timeout: 15000 }, async (response) => {
    let text = "";
    for await (const piece of response) text += piece;
    go(response.statusCode + " " + text.slice(0, 300));
  });
  asked.on("timeout", () => asked.destroy(new Error("no answer"))).on("error", (error) => go("0 " + error.message));
  asked.end();
});
const dial = (port) => new Promise((go) => {
  const socket = require("node:net").connect({ host: address, port });
  const end = (isOpen) => { go(isOpen); socket.destroy(); };
  socket.once("connect", () => end(true)).on("error", () => end(false)).setTimeout(2000, () => end(false));
});
(async () => console.log(JSON.stringify({ listed: await ask(ports[0]), other: await ask(ports[1]), direct: await dial(ports[0]) })))();`;
const seenSchema = z.object({ listed: z.string(), other: z.string(), direct: z.boolean() });
type Seen = z.output<typeof seenSchema>;

/**
 * Tries a gate beside a control: another pod's two servers say the same to anybody, and only the first is listed.
 *
 * @returns why it doesn't show what it should, with the fix; undefined if it does
 */
export async function whyGateFails(
  open: OpenPod,
  node: string,
  signal: AbortSignal,
): Promise<{ readonly reason: string; readonly fix: string } | undefined> {
  const opened: RemoteSandbox[] = [];
  const openNext = async (spec: SandboxSpec, options: PodOverrides) => {
    const sandbox = await open(spec, { signal, defer: () => undefined }, options);
    opened.push(sandbox);
    return sandbox;
  };
  try {
    const says = `ambit-gate-${randomUUID()}`;
    const peer = await openNext(probeSpec({}), {});
    const servers = await serversIn(peer, node, says, signal);
    const { address, ports } = servers;
    const family = address.includes(":") ? 6 : 4;
    const cidr = `${address}/${family === 4 ? 32 : 128}`;
    const rules: readonly NetworkRule[] = [{ kind: "range", cidr, family, port: ports[0] }];
    const decisions: boolean[] = [];
    const spec = probeSpec(
      { network: { mode: "allowlist", rules } },
      { onDecision: ({ allowed }) => void decisions.push(allowed) },
    );
    const sandbox = await openNext(spec, { egress: "gate" });
    const { stdout, stderr } = await runToEnd(sandbox, {
      argv: [node, "-e", clientProgram, JSON.stringify(servers)],
      env: pathOf(sandbox),
      signal,
    });
    if (stdout === "") throw new SandboxFailed(`The gate couldn't be tried: ${stderr.trim().slice(-300)}`);
    const reason = whyNotShown(seenSchema.parse(JSON.parse(stdout)), says, decisions);
    return reason === undefined ? undefined : { reason, fix: gateFix };
  } catch (error) {
    signal.throwIfAborted();
    return { reason: messageOf(error), fix: fixFor(error) };
  } finally {
    await Promise.all(opened.map((sandbox) => sandbox.close()));
  }
}

const gateFix =
  'let pods with the label ambit-role=gate reach what runs may reach, also other pods, or set sandbox-kubernetes\' egress to "bridge"';

/** Pure. */
export function whyNotShown(
  { listed, other, direct }: Seen,
  says: string,
  decisions: readonly boolean[],
): string | undefined {
  if (!listed.includes(says))
    return `a gate didn't reach the server of another pod that is listed: ${listed}`;
  if (other.includes(says)) return "a gate let a connection to an unlisted port through";
  if (direct) return "a pod with a gate reaches another pod without it";
  if (decisions.length !== 2 || !decisions.includes(true) || !decisions.includes(false))
    return `a gate reported ${decisions.length} decisions of 2`;
  return undefined;
}

const pathOf = ({ image }: RemoteSandbox): Record<string, string> =>
  image === undefined ? {} : { PATH: image.searchPath };

async function serversIn(peer: RemoteSandbox, node: string, says: string, signal: AbortSignal) {
  const server = await peer.spawn({ argv: [node, "-e", serverProgram, says], env: pathOf(peer), signal });
  const decoder = new TextDecoder();
  let said = "";
  for await (const piece of server.stdout) {
    said += decoder.decode(piece, { stream: true });
    if (said.includes("\n") || said.length > 1_000) break;
  }
  return serversSchema.parse(JSON.parse(said.split("\n")[0] ?? ""));
}

/** The kubelet, SSH, kube-proxy, a node exporter and the API server: on the node itself, which many policies don't cover. */
const nodePorts = [10_250, 22, 10_256, 9_100, 6_443];
const dnsPort = 53;
/** Of clouds, with their credentials: most of them, ECS, EKS, Azure, Alibaba, Oracle. */
const metadataServices: readonly DialTarget[] = [
  "169.254.169.254",
  "169.254.170.2",
  "169.254.170.23",
  "168.63.129.16",
  "100.100.100.200",
  "192.0.0.192",
  "fd00:ec2::254",
  "fd00:ec2::23",
].map((host) => ({ host, port: 80 }));
const nodeLocalResolver = "169.254.20.10";
/** Of other namespaces, where clusters have them. They lead to pods. */
const services: readonly DialTarget[] = [
  { host: "kubernetes.default.svc", port: 443 },
  { host: "kube-dns.kube-system.svc", port: dnsPort },
  { host: "kube-dns.kube-system.svc", port: dnsPort, protocol: "udp" },
  { host: "metrics-server.kube-system.svc", port: 443 },
];

export interface Surroundings {
  /** The API server as the runner reaches it. */
  readonly server: URL;
  readonly nodeAddresses: readonly string[];
  /** Environment of a container, one variable a line. */
  readonly environment: string;
  /** `/etc/resolv.conf` of a pod with the cluster's names. */
  readonly resolvers: string;
  /** `/proc/net/route`. */
  readonly routes: string;
  /** `/proc/net/ipv6_route`. */
  readonly routes6: string;
}

/** What a pod may reach without a policy, as far as it can be told without asking the cluster for more rights. Pure. */
export function candidates(
  surroundings: Surroundings,
  configured: readonly DialTarget[],
): readonly DialTarget[] {
  const { server, nodeAddresses, environment, resolvers, routes, routes6 } = surroundings;
  const variable = (name: string) => new RegExp(`^${name}=(.+)$`, "m").exec(environment)?.[1];
  const service = variable("KUBERNETES_SERVICE_HOST");
  const nameservers = [...resolvers.matchAll(/^nameserver\s+(\S+)/gm)].map(([, address = ""]) => address);
  const routers = [routerIn(routes), router6In(routes6)].filter((target) => target !== undefined);
  const targets: DialTarget[] = [
    ...configured,
    ...[...nodeAddresses, ...routers].flatMap((host) => nodePorts.map((port) => ({ host, port }))),
    ...(service === undefined
      ? []
      : [{ host: service, port: Number(variable("KUBERNETES_SERVICE_PORT") ?? 443) }]),
    { host: server.hostname.replace(/^\[|\]$/g, ""), port: Number(server.port || 443) },
    ...[...nameservers, nodeLocalResolver].flatMap((host): DialTarget[] => [
      { host, port: dnsPort },
      { host, port: dnsPort, protocol: "udp" },
    ]),
    ...services,
    ...metadataServices,
  ];
  const byName = new Map(
    targets.map((target) => [`${target.host} ${target.port} ${target.protocol ?? "tcp"}`, target]),
  );
  return [...byName.values()];
}

/** The default route's address: little-endian hexadecimal in the kernel's table. */
export function routerIn(routes: string): string | undefined {
  for (const line of routes.split("\n").slice(1)) {
    const [, destination, gateway] = line.trim().split(/\s+/);
    if (destination !== "00000000" || gateway === undefined || !/^[0-9A-F]{8}$/.test(gateway)) continue;
    return (gateway.match(/../g) ?? [])
      .reverse()
      .map((byte) => Number.parseInt(byte, 16))
      .join(".");
  }
  return undefined;
}

/** The same for IPv6. A link-local address needs its link's name. */
export function router6In(routes: string): string | undefined {
  for (const line of routes.split("\n")) {
    const [destination, length, , , gateway = "", , , , , link] = line.trim().split(/\s+/);
    if (!/^0{32}$/.test(destination ?? "") || length !== "00" || !/^[0-9a-f]{32}$/.test(gateway)) continue;
    if (/^0{32}$/.test(gateway)) continue;
    const address = (gateway.match(/.{4}/g) ?? []).join(":");
    return /^fe[89ab]/.test(address) && link !== undefined ? `${address}%${link}` : address;
  }
  return undefined;
}
