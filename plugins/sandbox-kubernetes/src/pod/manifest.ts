import type { Ownership, Shape } from "@ambit/backend-kit";
import { imageStore } from "@ambit/egress/credentials";
import type { V1Container, V1Pod, V1Volume, V1VolumeMount } from "@kubernetes/client-node";
import type { KubernetesConfig } from "../config.js";
import { enteringCapabilities, type PodShape } from "../enter/steps.js";
import { holderCommand } from "./holder.js";
import { podName, sandboxLabels } from "./labels.js";
import { messageFile, mountsOf, ownHosts, scratchFolders, trustsMore } from "./mounts.js";
import { type LeaseReference, metadataOf, placementOf, staysAnnotations } from "./placement.js";
import { mebibytes, processors } from "./quantities.js";

/** What the guest daemon does as root: give files and processes to other users, and end processes. */
export const daemonCapabilities = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID"];

export const containerName = "sandbox";
const storeContainerName = "trust";
const hostsAnnotation = "ambit-hosts";
const storeCopy = "/ambit-trust";

export interface ManifestOptions {
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
