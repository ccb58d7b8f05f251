/** The pods that Ambit asks a cluster for: a sandbox, and the gate of one. */

import { createHash } from "node:crypto";
import type { SeccompArchitecture } from "@ambit/attacks/system-calls";
import { labelsOf, type Ownership, type Shape } from "@ambit/backend-kit";
import { imageStore } from "@ambit/egress/credentials";
import type {
  V1Container,
  V1ObjectMeta,
  V1OwnerReference,
  V1Pod,
  V1PodSpec,
  V1Volume,
  V1VolumeMount,
} from "@kubernetes/client-node";
import type { KubernetesConfig } from "../config.js";
import {
  type Entering,
  enteringCapabilities,
  enteringProgram,
  mountingSteps,
  openingSteps,
  type PodMounts,
  type PodShape,
  stepsProgram,
} from "../enter.js";

/** By it, policies tell pods without a network boundary from all others. */
export const networkLabel = "ambit-network";
/** By these, a session's policies tell its gate and its sandbox from all others. */
const [gateLabel, roleLabel] = ["ambit-gate", "ambit-role"];

type Owned = Pick<Ownership, "session" | "replica">;
type Labels = Readonly<Record<string, string>>;

/** Two runners may have a session of the same name. */
const podName = ({ session, replica }: Owned) =>
  `ambit-${createHash("sha256").update(`${replica} ${session}`).digest("hex").slice(0, 20)}`;

export const gateName = (owner: Owned) => `${podName(owner)}-gate`;

/** What a sandbox with a gate has besides its other labels, and its gate. */
export const sandboxOfGate = (gate: string): Labels => ({ [gateLabel]: gate, [roleLabel]: "sandbox" });
export const gateOfSandbox = (gate: string): Labels => ({ [gateLabel]: gate, [roleLabel]: "gate" });
/** The gate's name among such labels. */
export const gateOf = (labels: Labels): string | undefined => labels[gateLabel];

/** Label values are shorter than some names of sessions. */
export function podLabels(owner: Ownership): Labels {
  const isValue = /^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/.test(owner.session);
  return labelsOf(isValue ? owner : { ...owner, session: podName(owner) });
}

/** Of a sandbox's pod. */
export const sandboxLabels = (
  owner: Ownership,
  { egress }: Pick<KubernetesConfig, "egress">,
  isNetworkOpen: boolean,
): Labels => ({
  ...podLabels(owner),
  [networkLabel]: isNetworkOpen ? "open" : "closed",
  ...(egress === "gate" ? sandboxOfGate(gateName(owner)) : {}),
});

/** Of its gate's. No policy leaves it open. */
export const gateLabels = (owner: Ownership): Labels => ({
  ...podLabels(owner),
  [networkLabel]: "gate",
  ...gateOfSandbox(gateName(owner)),
});

/** The Lease that a pod ends with. */
export interface LeaseReference {
  readonly name: string;
  readonly uid: string;
}

/** Autoscalers leave it where it is. */
const staysAnnotations = {
  "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
  "karpenter.sh/do-not-disrupt": "true",
};

const leaseOwner = (lease: LeaseReference): V1OwnerReference => ({
  apiVersion: "coordination.k8s.io/v1",
  kind: "Lease",
  ...lease,
  controller: false,
  blockOwnerDeletion: false,
});

/** Of every pod. Pure. */
const metadataOf = (name: string, lease: LeaseReference, config: KubernetesConfig): V1ObjectMeta => ({
  name,
  namespace: config.namespace,
  annotations: staysAnnotations,
  ownerReferences: [leaseOwner(lease)],
});

/** Where every pod may run, how long, and with nothing of the cluster. Pure. */
const placementOf = (config: KubernetesConfig): Omit<V1PodSpec, "containers"> => ({
  automountServiceAccountToken: false,
  enableServiceLinks: false,
  restartPolicy: "Never",
  terminationGracePeriodSeconds: 1,
  activeDeadlineSeconds: config.ttlMinutes * 60,
  ...(config.runtimeClass === undefined ? {} : { runtimeClassName: config.runtimeClass }),
  ...(Object.keys(config.nodeSelector).length === 0 ? {} : { nodeSelector: config.nodeSelector }),
  ...(config.pullSecrets.length === 0
    ? {}
    : { imagePullSecrets: config.pullSecrets.map((name) => ({ name })) }),
  tolerations: [
    ...config.tolerations.map(({ value, effect, ...toleration }) => ({
      ...toleration,
      ...(value === undefined ? {} : { value }),
      ...(effect === undefined ? {} : { effect }),
    })),
    // A node that is away is noticed sooner than by the cluster's default of five minutes.
    ...["not-ready", "unreachable"].map((state) => ({
      key: `node.kubernetes.io/${state}`,
      operator: "Exists",
      effect: "NoExecute",
      tolerationSeconds: 30,
    })),
  ],
  securityContext: { seccompProfile: { type: "RuntimeDefault" } },
});

/** Multiples of one, by the suffix of a Kubernetes quantity. */
const suffixes: Readonly<Record<string, number>> = {
  "": 1,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
};

/** What a quantity says, in ones; undefined for another text. Pure. */
export function quantityOf(text: string): number | undefined {
  const [, digits, suffix = ""] = /^([0-9.]+)([a-zA-Z]*)$/.exec(text) ?? [];
  const factor = suffixes[suffix];
  return digits === undefined || factor === undefined ? undefined : Number(digits) * factor;
}

const mebibytes = (count: number) => `${count}Mi`;

/** The API knows no smaller part of a processor than a thousandth. */
const processors = (count: number) => `${Math.max(1, Math.round(count * 1_000))}m`;

/** Seconds between two looks. */
const pollSeconds = 3;

/**
 * The end of the script of a pod's first process, whose shell has `$idle` and `$step`, in seconds. It waits, and ends when no
 * other process of its user has run in the pod for `$idle`. `wait` reaps all ended processes: orphans become children of the
 * first one.
 */
const waitUntilIdle = `trap 'exit 0' TERM
quiet=0
while [ "$quiet" -lt "$idle" ]; do
  sleep "$step" & wait $!
  quiet=$((quiet + step))
  for one in /proc/[0-9]*; do
    [ "$one" = /proc/1 ] || [ ! -O "$one" ] || quiet=0
  done
done`;

/** A script's argument. Never less than was asked for. */
const wholeSeconds = (milliseconds: number): string => `${Math.ceil(milliseconds / 1_000)}`;

/** The runtime writes a container's last message here: no user but root may enter the folder. */
const hiddenFolder = "/dev/.ambit";
const messageFile = `${hiddenFolder}/termination-log`;
/** What a pod has as `/etc/hosts`: nothing of the cluster. */
const ownHosts = "127.0.0.1 localhost\n::1 localhost\n";
const hostsFile = `${hiddenFolder}/hosts`;
/** Folders that every process of a run may write to. */
const scratchFolders = ["/tmp", "/var/tmp", "/dev/shm"];
/** The runtime's own files over the image's. */
const runtimeFiles = ["/etc/hostname", "/etc/resolv.conf"];

/** Whether root adds authorities to the image's: the store is then a copy, which no process of a run can write. Pure. */
const trustsMore = (
  { hasSecrets }: Shape,
  { trustedAuthorities }: Pick<KubernetesConfig, "trustedAuthorities">,
) => hasSecrets || trustedAuthorities.length > 0;

/** The mounts that a pod in the shape `user-namespace` makes itself: for a volume, the kubelet would let it wait. Pure. */
export function mountsOf(
  shape: Shape,
  { bridge, scratchMb, trustedAuthorities }: KubernetesConfig,
): PodMounts {
  const { diskMb } = shape.boundary.resources;
  const { folder } = bridge;
  return {
    onDisk: [
      ...(diskMb === undefined ? [folder] : []),
      ...(trustsMore(shape, { trustedAuthorities }) ? [imageStore] : []),
    ],
    inMemory: [
      ...(diskMb === undefined ? [] : [{ path: folder, sizeMb: diskMb, mode: "755" }]),
      ...scratchFolders.map((path) => ({ path, sizeMb: scratchMb, mode: "1777" })),
    ],
    files: [
      { from: hostsFile, to: "/etc/hosts" },
      // Each becomes a mount also where a runtime writes into the image instead.
      ...runtimeFiles.map((path) => ({ from: path, to: path })),
    ],
  };
}

export const enteringProgramName = "enter";

/**
 * Puts the entering program into the bridge's folder, closes both to everyone but root, and waits. The program can be executed
 * once everything else is done: the first command waits for that.
 */
const script = (prepare: string, clear: string) => `umask 022; folder=$1; idle=$2; step=$3
write() { printf %s "$1" | base64 -d > "$2"; }
machine=$(uname -m)
case $machine in x86_64) programs=$4 ;; aarch64) programs=$5 ;; *) echo "no system call is known on $machine"; exit 1 ;; esac
shift 5
read -r enter open mount <<END
$programs
END
chmod 700 ${hiddenFolder} || exit 1
${prepare}
write "$enter" "$folder/${enteringProgramName}" && chmod 500 "$folder/${enteringProgramName}" || exit 1
${clear}${waitUntilIdle}`;

const [openProgram, mountProgram] = [`${hiddenFolder}/open`, `${hiddenFolder}/mount`];

/** Folders are made between the two programs, while the image can be written. What fails is in the pod's last message. */
const ownMounts = script(
  `write "$open" ${openProgram} && write "$mount" ${mountProgram} && chmod 500 ${openProgram} ${mountProgram} || exit 1
printf '${ownHosts.replaceAll("\n", "\\n")}' > ${hostsFile} || exit 1
${openProgram} /bin/sh -c 'mkdir -p "$@" && exec ${mountProgram} /bin/sh -c :' sh "$@" > ${messageFile} 2>&1 || exit 1`,
  `rm -f ${openProgram} ${mountProgram}\n`,
);

const volumes = script('chmod 755 "$folder" && chmod 1777 "$@" || exit 1', "");

interface HolderOptions extends Pick<Entering, "podShape" | "isNetworkOpen"> {
  /**
   * Milliseconds without any process of root besides itself after which a pod's first process ends: the guest daemon ends when its
   * runner is silent, and no process of a run is root. On a busy node, a runner may need as long as it waits for a pod to bring
   * the guest daemon.
   */
  readonly idleMs: number;
  /** The bridge's folder. */
  readonly folder: string;
  /** Those that the pod makes itself, in the shape `user-namespace`. */
  readonly mounts: PodMounts;
}

/** The first command of a pod. Pure. */
function holderCommand(options: HolderOptions): string[] {
  const { folder, idleMs, podShape, mounts } = options;
  const isApart = podShape === "user-namespace";
  const folders = [...mounts.onDisk, ...mounts.inMemory.map(({ path }) => path)];
  return [
    ...["/bin/sh", "-c", isApart ? ownMounts : volumes, "sh"],
    ...[folder, wholeSeconds(idleMs), `${pollSeconds}`],
    ...[programsFor("x64", options), programsFor("arm64", options)],
    ...(isApart ? folders : scratchFolders),
  ];
}

function programsFor(
  architecture: SeccompArchitecture,
  { folder, podShape, isNetworkOpen, mounts }: HolderOptions,
): string {
  const sealed = mounts.files.map(({ to }) => to);
  const entering = { podShape, isNetworkOpen, folders: [folder, ...scratchFolders], sealed };
  const sandboxSteps = [openingSteps(architecture), mountingSteps(architecture, mounts)];
  return [
    enteringProgram(architecture, entering),
    ...(podShape === "user-namespace" ? sandboxSteps.map((steps) => stepsProgram(architecture, steps)) : []),
  ]
    .map((program) => program.toString("base64"))
    .join(" ");
}

/** A command inside the sandbox's own namespaces, behind its filter. Its program is looked up in `PATH`. Pure. */
export function enteringCommand(
  folder: string,
  argv: readonly string[],
  searchPath: string | undefined,
): readonly string[] {
  return [`${folder}/${enteringProgramName}`, ...shellCommand("", argv, searchPath)];
}

/** A command that the shell becomes after a script. Its program is looked up in `PATH`. Pure. */
export function shellCommand(
  script: string,
  argv: readonly string[],
  searchPath: string | undefined,
): readonly string[] {
  const path = searchPath === undefined ? "" : `PATH='${searchPath.replaceAll("'", "'\\''")}' `;
  return ["/bin/sh", "-c", `${script}${path}exec "$@"`, "sh", ...argv];
}

/** What the guest daemon does as root: give files and processes to other users, and end processes. */
export const daemonCapabilities = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID"];

export const containerName = "sandbox";
const storeContainerName = "trust";
const hostsAnnotation = "ambit-hosts";
const storeCopy = "/ambit-trust";

interface ManifestOptions {
  readonly shape: Shape;
  readonly owner: Ownership;
  readonly podShape: PodShape;
  readonly lease: LeaseReference;
  readonly config: KubernetesConfig;
}

/** The pod of a boundary. Pure. */
export function manifestOf({ shape, owner, podShape, lease, config }: ManifestOptions): V1Pod {
  const isOpen = shape.boundary.network.mode === "on";
  const isApart = podShape === "user-namespace";
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      ...metadataOf(podName(owner), lease, config),
      labels: sandboxLabels(owner, config, isOpen),
      annotations: { ...(isApart ? {} : { [hostsAnnotation]: ownHosts }), ...staysAnnotations },
    },
    spec: {
      ...placementOf(config),
      hostname: "sandbox",
      ...(isApart ? { hostUsers: false } : {}),
      ...(isOpen ? {} : { dnsPolicy: "None", dnsConfig: { nameservers: ["127.0.0.1"] } }),
      ...(trustsMore(shape, config) && !isApart ? { initContainers: [storeContainer(config)] } : {}),
      containers: [mainContainer(shape, podShape, config)],
      ...(isApart ? {} : { volumes: volumesOf(shape, config) }),
    },
  };
}

const scratchName = (folder: string) => folder.slice(1).replaceAll("/", "-");

function mainContainer(shape: Shape, podShape: PodShape, config: KubernetesConfig): V1Container {
  const { memoryMb = config.memoryMb, cpus = config.cpus } = shape.boundary.resources;
  const { folder } = config.bridge;
  const volumeMounts: V1VolumeMount[] = [
    { name: "bridge", mountPath: folder },
    ...scratchFolders.map((path) => ({ name: scratchName(path), mountPath: path })),
    // The kubelet's own is writable.
    { name: "names", mountPath: "/etc/hosts", subPath: "hosts", readOnly: true },
    ...(trustsMore(shape, config) ? [{ name: "trust", mountPath: imageStore }] : []),
  ];
  return {
    name: containerName,
    image: config.image,
    imagePullPolicy: config.pull,
    command: holderCommand({
      idleMs: config.openTimeoutMs,
      podShape,
      folder,
      isNetworkOpen: shape.boundary.network.mode === "on",
      mounts: mountsOf(shape, config),
    }),
    workingDir: "/",
    // The image's would be loaded into the guest daemon, or print where its messages are expected.
    env: [{ name: "LD_PRELOAD", value: "" }],
    terminationMessagePath: messageFile,
    resources: {
      limits: { memory: mebibytes(memoryMb), cpu: processors(cpus) },
      requests: {
        memory: mebibytes(Math.min(config.reserve.memoryMb ?? memoryMb, memoryMb)),
        cpu: processors(Math.min(config.reserve.cpus ?? cpus, cpus)),
      },
    },
    securityContext: {
      runAsUser: 0,
      runAsGroup: 0,
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: {
        drop: ["ALL"],
        add: [...daemonCapabilities, ...(podShape === "user-namespace" ? enteringCapabilities : [])],
      },
    },
    ...(podShape === "user-namespace" ? {} : { volumeMounts }),
  };
}

/** Copies the image's authorities to where the session's is added: below a read-only root they can't be changed. */
function storeContainer(config: KubernetesConfig): V1Container {
  const script = `[ ! -d ${imageStore} ] || cp -a ${imageStore}/. ${storeCopy}/`;
  return {
    name: storeContainerName,
    image: config.image,
    imagePullPolicy: config.pull,
    command: ["/bin/sh", "-c", script],
    workingDir: "/",
    resources: {
      limits: { memory: mebibytes(64), cpu: processors(1) },
      requests: { memory: mebibytes(16), cpu: processors(0.01) },
    },
    terminationMessagePath: messageFile,
    securityContext: {
      runAsUser: 0,
      runAsGroup: 0,
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"], add: ["CHOWN", "DAC_OVERRIDE", "FOWNER"] },
    },
    volumeMounts: [{ name: "trust", mountPath: storeCopy }],
  };
}

function volumesOf(shape: Shape, config: KubernetesConfig): V1Volume[] {
  const { diskMb } = shape.boundary.resources;
  const inMemory = (sizeMb: number) => ({ medium: "Memory", sizeLimit: mebibytes(sizeMb) });
  return [
    { name: "bridge", emptyDir: diskMb === undefined ? {} : inMemory(diskMb) },
    ...scratchFolders.map((path) => ({ name: scratchName(path), emptyDir: inMemory(config.scratchMb) })),
    {
      name: "names",
      downwardAPI: {
        items: [{ path: "hosts", fieldRef: { fieldPath: `metadata.annotations['${hostsAnnotation}']` } }],
      },
    },
    ...(trustsMore(shape, config) ? [{ name: "trust", emptyDir: { sizeLimit: mebibytes(64) } }] : []),
  ];
}

export const gateContainer = "gate";
/** At which a gate listens. Its user may open no port below 1024. */
export const gatePort = 8_443;
/** Neither root nor a user of any sandbox's process. */
export const gateUser = 65_532;

const reserved = { memoryMb: 64, cpus: 0.05 };

/** Ends when nothing else has run in the pod for a while: the gate's program ends when its runner is gone. */
const gateScript = `idle=$1; step=$2
${waitUntilIdle}`;

interface GateManifestOptions {
  readonly owner: Ownership;
  readonly podShape: PodShape;
  readonly lease: LeaseReference;
  readonly config: KubernetesConfig;
}

/**
 * The pod of a session's gate: with the cluster's names and network, and nothing of a run, neither in its specification nor on
 * a disk. What it may do comes over a stream. Pure.
 */
export function gateManifestOf({ owner, podShape, lease, config }: GateManifestOptions): V1Pod {
  const { memoryMb, cpus } = config.gate;
  const { securityContext, ...placement } = placementOf(config);
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { ...metadataOf(gateName(owner), lease, config), labels: gateLabels(owner) },
    spec: {
      ...placement,
      securityContext: {
        ...securityContext,
        runAsNonRoot: true,
        runAsUser: gateUser,
        runAsGroup: gateUser,
      },
      hostname: "gate",
      ...(podShape === "user-namespace" ? { hostUsers: false } : {}),
      // A name with a dot is first asked for as it is: the rules name hosts in full.
      dnsPolicy: "ClusterFirst",
      dnsConfig: { options: [{ name: "ndots", value: "1" }] },
      containers: [
        {
          name: gateContainer,
          image: config.image,
          imagePullPolicy: config.pull,
          command: ["/bin/sh", "-c", gateScript, "sh", wholeSeconds(config.openTimeoutMs), `${pollSeconds}`],
          workingDir: "/",
          env: [{ name: "LD_PRELOAD", value: "" }],
          resources: {
            limits: { memory: mebibytes(memoryMb), cpu: processors(cpus) },
            requests: {
              memory: mebibytes(Math.min(reserved.memoryMb, memoryMb)),
              cpu: processors(Math.min(reserved.cpus, cpus)),
            },
          },
          terminationMessagePath: "/dev/termination-log",
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ["ALL"] },
          },
        },
      ],
    },
  };
}
