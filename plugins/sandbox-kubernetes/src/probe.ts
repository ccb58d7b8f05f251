import { probeSandboxes } from "@ambit/attacks/standard-probe";
import { type DialTarget, NotProven, probeSpec, reachedTargets, refusedByProfile } from "@ambit/backend-kit";
import type { RemoteSandbox } from "@ambit/bridge";
import { type Capability, type Finding, messageOf, SandboxFailed } from "@ambit/core/plugin";
import { imageStore, makeAuthority } from "@ambit/egress/credentials";
import { fixFor } from "./api/server.js";
import { isNetwork } from "./claims.js";
import { keptByGate, type OpenPod, whyGateFails } from "./gate-trial.js";
import { NetworkOpen, policyFix, reviewPolicies, whyNotClosed } from "./network/policies.js";
import { candidates } from "./network/targets.js";
import type { ClusterAccess } from "./open/access.js";
import { daemonCapabilities, networkLabel } from "./pod/manifest.js";
import { deleted, PodMachine } from "./pod/pod-machine.js";
import { userNamespaceFix } from "./pod/status.js";
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
