import { type Evidence, SandboxFailed } from "@ambit/core/plugin";
import type { ContainerCreateOptions, ContainerInspectInfo } from "dockerode";

type RequestedHostConfig = NonNullable<ContainerCreateOptions["HostConfig"]>;

/** Settings that implement a limit. Engines ignore those that they can't apply, with only a warning. */
const limits = ["NetworkMode", "ReadonlyRootfs", "Memory", "PidsLimit", "NanoCpus", "Runtime"] as const;
/** The same in words that only Docker repeats as they were asked; for others, the probe's sandboxes show what holds. */
const inDockersWords = ["IpcMode", "ShmSize", "SecurityOpt", "CapAdd", "CapDrop", "Tmpfs"] as const;

/** What undoes a restriction, and is never asked for. Engines say `private` where they don't mean another's. */
const never = [
  "Privileged",
  "PidMode",
  "UTSMode",
  "UsernsMode",
  "Binds",
  "VolumesFrom",
  "GroupAdd",
  "Devices",
  "DeviceRequests",
  "DeviceCgroupRules",
  "Links",
  "Sysctls",
  "OomKillDisable",
];
const isUnset = (value: unknown) =>
  [undefined, null, false, "", "private"].some((one) => one === value) ||
  (typeof value === "object" && value !== null && Object.keys(value).length === 0);

/** Of the engine's own lists: what a container must never show, or let change. */
const kernelPaths = {
  MaskedPaths: ["/proc/kcore", "/proc/keys"],
  ReadonlyPaths: ["/proc/sys", "/proc/sysrq-trigger"],
};

/**
 * Reads back which settings the engine applied.
 *
 * @param isDocker whether the engine repeats settings as they were asked, unlike Podman.
 * @throws SandboxFailed where that isn't what was asked for.
 */
export function readBack(
  { Id, Image, State, Config, HostConfig: applied, Mounts, NetworkSettings }: ContainerInspectInfo,
  { HostConfig: asked = {}, User }: ContainerCreateOptions,
  isDocker: boolean,
): Evidence {
  if (!State.Running) {
    throw new SandboxFailed(`The container's first command ended with exit code ${State.ExitCode}`);
  }
  for (const name of isDocker ? [...limits, ...inDockersWords] : limits) {
    const [wanted, found] = [wordsFor(asked[name]), wordsFor(applied[name])];
    if (asked[name] === undefined || wanted.join() === found.join()) continue;
    const [lacking, more] = [missingIn(found, wanted), missingIn(wanted, found)];
    throw new SandboxFailed(`The engine was asked for ${name} ${lacking}, and applied ${more}`);
  }
  const own = new Map<string, unknown>(Object.entries(applied));
  for (const name of never) {
    if (isUnset(own.get(name))) continue;
    throw new SandboxFailed(
      `The engine wasn't asked for ${name}, and applied ${wordsFor(own.get(name)).join(", ")}`,
    );
  }
  for (const [name, paths] of Object.entries(kernelPaths)) {
    const list = own.get(name);
    const missing = Array.isArray(list) ? paths.find((path) => !list.includes(path)) : undefined;
    if (missing !== undefined)
      throw new SandboxFailed(`The engine's ${name} of the container lack ${missing}`);
  }
  if (User !== undefined && Config.User !== User) {
    throw new SandboxFailed(`The engine was asked for the user ${User}, and applied "${Config.User}"`);
  }
  checkMounts(asked, Mounts);
  const networks = Object.keys(NetworkSettings.Networks);
  if (asked.NetworkMode === "none" && networks.some((name) => name !== "none")) {
    throw new SandboxFailed(`The container has a network, though none was requested: ${networks.join(", ")}`);
  }
  return {
    "docker.container": Id.slice(0, 12),
    "docker.image": Image,
    "docker.network": String(applied.NetworkMode),
    ...(asked.Memory === undefined ? {} : { "docker.memory": String(applied.Memory) }),
    ...(asked.NanoCpus === undefined ? {} : { "docker.nanoCpus": String(applied.NanoCpus) }),
    "docker.pidsLimit": String(applied.PidsLimit),
  };
}

/** A value in one spelling: lists in any order, capabilities without `CAP_`. */
function wordsFor(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.map((one) => String(one).replace(/^CAP_/, "")).sort();
  if (typeof value !== "object" || value === null) return [String(value)];
  return Object.entries(value)
    .map(([name, one]) => `${name}: ${String(one)}`)
    .sort();
}

/** Those that aren't among the others, for an error. A filter of system calls is long. */
const missingIn = (others: readonly string[], words: readonly string[]) =>
  words
    .filter((word) => !others.includes(word))
    .map((word) => word.slice(0, 60))
    .join(", ") || "nothing else";

/** The host's folders that are shown, and which folders and volumes can be written. */
function checkMounts(
  { Mounts: asked = [] }: RequestedHostConfig,
  applied: ContainerInspectInfo["Mounts"],
): void {
  for (const { Type, Source, Destination, RW } of applied) {
    const requested = asked.find((one) => one.Type === Type && one.Target === Destination);
    if (requested === undefined && Type === "bind") {
      throw new SandboxFailed(`The engine wasn't asked to mount ${Source}, and did so at ${Destination}`);
    }
    if (RW && requested?.ReadOnly === true) {
      throw new SandboxFailed(
        `The engine was asked to mount ${Destination} read-only, and mounted it writable`,
      );
    }
  }
  const missing = asked.find((one) => !applied.some(({ Destination }) => Destination === one.Target));
  if (missing !== undefined)
    throw new SandboxFailed(`The engine was asked for a mount at ${missing.Target}, and made none`);
}

/** Where the image's own volumes are mounted: processes could write to them whatever the boundary says. */
export function unaskedVolumes(
  { Mounts }: Pick<ContainerInspectInfo, "Mounts">,
  { HostConfig: asked = {} }: ContainerCreateOptions,
): readonly string[] {
  const targets = (asked.Mounts ?? []).map(({ Target }) => Target);
  const found = Mounts.filter(({ Type }) => Type === "volume").map(({ Destination }) => Destination);
  return found.filter((path) => !targets.includes(path));
}
