import { createHash, randomInt } from "node:crypto";
import { labelsOf, type Ownership, type Shape } from "@ambit/backend-kit";
import { type LayerUse, type RequiredPath, SandboxFailed } from "@ambit/core/plugin";
import { imageStore } from "@ambit/egress/credentials";
import type { ContainerCreateOptions, MountSettings } from "dockerode";
import type { DockerConfig } from "../config.js";
import { mountsAgents } from "../config.js";
import type { LayerMounts } from "../layers/mounted-layer.js";
import { type EngineFacts, firstCommand, hidingRights } from "./hiding.js";

/** User ids that systemd's conventions leave unassigned: no user of the host has one. */
const users = { first: 0x7000_0000, last: 0x7fff_ffff };
/** Of one sandbox: more than its guest daemon gives to processes. */
const usersOfOne = 4_096;
const places = Math.floor((users.last - users.first) / usersOfOne);

/**
 * The first user id of one sandbox's processes. The kernel counts what a user has of inotify, pipes' memory and the like over all
 * containers: the same ids could take it from each other. Those of one layer, which is one project's, are the same, as its files'.
 */
export function ownFirstUser(layer: Pick<LayerUse, "name"> | undefined): number {
  const place =
    layer === undefined
      ? randomInt(places)
      : createHash("sha256").update(layer.name).digest().readUInt32BE() % places;
  return users.first + place * usersOfOne;
}

/**
 * What the guest daemon does as root: give files and processes to other users, and end processes. No process of a run
 * is root.
 */
export const keptCapabilities = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID"];

/** Where the runner's files are mounted inside; below it, each has the path that it has on the runner. */
export const copyRoot = "/opt/ambit";

const mib = 1024 * 1024;

/**
 * The options of a boundary's container. Pure.
 *
 * @param guest the guest daemon's command.
 * @param layer that it has to do with. Default: none.
 * @throws SandboxFailed for a path that no mount can have.
 */
export function containerOptions(
  shape: Shape,
  owner: Ownership,
  config: DockerConfig,
  guest: readonly string[],
  { hiding, imageVolumes, seccomp }: EngineFacts,
  layer: LayerMounts = { mounts: [], tmpfs: {} },
): ContainerCreateOptions {
  const { network, resources } = shape.boundary;
  const { memoryMb, processes, cpus, diskMb } = resources;
  const { folder } = config.bridge;
  const labels = { ...labelsOf(owner) };
  const scratch = `rw,exec,nosuid,nodev,mode=1777,size=${config.scratchMb}m`;
  const mounts: MountSettings[] = mountsAgents(config) ? shape.requiredPaths.map(mountOf) : [];
  for (const { source, target } of config.mounts) {
    mounts.push({ Type: "bind", Source: source, Target: target, ReadOnly: true });
  }
  if (diskMb === undefined) mounts.push(volumeAt(folder, true, labels));
  mounts.push(...layer.mounts);
  // A copy of the image's store: root adds to it, and no process of a run is root.
  if (shape.hasSecrets || config.trustedAuthorities.length > 0)
    mounts.push(volumeAt(imageStore, false, labels));
  // The engine mounts them anyway, writable in spite of the read-only root: these are empty and read-only.
  for (const path of imageVolumes) mounts.push(volumeAt(path, true, labels, emptyReadOnly));
  const appArmor = config.appArmor === undefined ? [] : [`apparmor=${config.appArmor}`];
  return {
    name: nameOf(owner),
    Image: config.image,
    Labels: labels,
    Hostname: "sandbox",
    User: "0:0",
    WorkingDir: "/",
    Entrypoint: firstCommand(guest, hiding),
    Cmd: [],
    // The runner is attached before it starts. Without it, the guest daemon ends, and the container with it.
    OpenStdin: true,
    StdinOnce: true,
    // An engine that stops, or restarts after a crash, doesn't wait for it.
    StopTimeout: 0,
    // The image's would run as root, and might run a file that the run may change.
    Healthcheck: { Test: ["NONE"] },
    // The image's would be loaded into the guest daemon, or print where its messages are expected.
    Env: [
      "LD_PRELOAD=",
      "NODE_OPTIONS=",
      ...(config.searchPath === undefined ? [] : [`PATH=${config.searchPath}`]),
    ],
    HostConfig: {
      ...(config.runtime === undefined ? {} : { Runtime: config.runtime }),
      // Under a boundary, every connection goes through the bridge and the runner.
      NetworkMode: network.mode === "on" ? config.network : "none",
      IpcMode: "private",
      ReadonlyRootfs: true,
      CapDrop: ["ALL"],
      CapAdd: hiding === "drop" ? [...keptCapabilities, ...hidingRights] : keptCapabilities,
      SecurityOpt: ["no-new-privileges", `seccomp=${seccomp}`, ...appArmor],
      Tmpfs: {
        "/tmp": scratch,
        "/var/tmp": scratch,
        ...layer.tmpfs,
        ...(diskMb === undefined ? {} : { [folder]: `rw,exec,nosuid,nodev,mode=755,size=${diskMb}m` }),
      },
      ShmSize: config.scratchMb * mib,
      Mounts: mounts,
      ...(memoryMb === undefined ? {} : { Memory: memoryMb * mib, MemorySwap: memoryMb * mib }),
      PidsLimit: processes ?? config.processes,
      ...(cpus === undefined ? {} : { NanoCpus: Math.round(cpus * 1e9) }),
      // Only the bridge prints anything, and the runner has that already.
      LogConfig: { Type: "none", Config: {} },
      RestartPolicy: { Name: "no" },
    },
  };
}

export const nameOf = ({ session, replica }: Pick<Ownership, "session" | "replica">) =>
  `ambit-${session}-${replica.split("-")[1] ?? ""}`;

const emptyReadOnly = { type: "tmpfs", device: "tmpfs", o: "ro,nosuid,nodev,noexec,size=4k" };

/** It goes with its container; its labels find one whose container somebody else removed. */
function volumeAt(
  Target: string,
  NoCopy: boolean,
  Labels: Record<string, string>,
  Options: Record<string, string> = {},
): MountSettings {
  const VolumeOptions = { NoCopy, Labels, DriverConfig: { Name: "local", Options } };
  return { Type: "volume", Source: "", Target, VolumeOptions };
}

function mountOf({ path, what }: RequiredPath): MountSettings {
  if (!path.startsWith("/") || path.split("/").includes("..")) {
    throw new SandboxFailed(`${what} can't be mounted from "${path}"`);
  }
  return { Type: "bind", Source: path, Target: `${copyRoot}${path}`, ReadOnly: true };
}
