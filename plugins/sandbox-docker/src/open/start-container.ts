import { realpath } from "node:fs/promises";
import {
  defaultDataFolder,
  type Ownership,
  type Shape,
  seccompProfile,
  signalWithin,
  writeSeccompProfile,
} from "@ambit/backend-kit";
import type { FirstCommand } from "@ambit/bridge";
import { type Evidence, type Log, type RequiredPath, SandboxFailed } from "@ambit/core/plugin";
import type Docker from "dockerode";
import type { ContainerCreateOptions, ContainerInspectInfo } from "dockerode";
import { type DockerConfig, mountsAgents } from "../config.js";
import { asSandboxFailed, type Engine, statusOf } from "../engine/engine.js";
import type { LayerMounts } from "../layers/mounted-layer.js";
import { Container } from "./container.js";
import { containerOptions } from "./container-options.js";
import { type EngineFacts, remount } from "./hiding.js";

/**
 * No mount may show Ambit's own data, also not by a link.
 * @throws SandboxFailed naming what is installed in such a folder
 */
export async function requireOutside(dataFolder: string, paths: readonly RequiredPath[]): Promise<void> {
  const data = await realPath(dataFolder);
  for (const { path, what } of paths) {
    const real = await realPath(path);
    if (!`${data}/`.startsWith(real.endsWith("/") ? real : `${real}/`)) continue;
    throw new SandboxFailed(
      `${what} can't be mounted: its folder contains Ambit's own data. Install it in another folder`,
    );
  }
}

/** The path itself where there is nothing: the engine says so. */
const realPath = (path: string) => realpath(path).catch(() => path);

/** @param folder for the filter as a file, which a Podman on this host reads. @throws SandboxFailed */
export async function factsOf(engine: Engine, config: DockerConfig, folder: string): Promise<EngineFacts> {
  try {
    // The library's types don't have the option.
    const asked: {
      version(options: object): Promise<Docker.DockerVersion>;
      info(options: object): Promise<{ readonly SecurityOptions?: readonly string[] | null }>;
    } = engine;
    const abortSignal = signalWithin(config.requestTimeoutMs);
    const [{ Components = [] }, { SecurityOptions }] = await Promise.all([
      asked.version({ abortSignal }),
      asked.info({ abortSignal }),
    ]);
    const isMapped = SecurityOptions?.some((option) => /^name=(?:userns|rootless)\b/.test(option));
    const isPodman = JSON.stringify(Components).includes("Podman");
    return {
      hiding: "exec",
      imageVolumes: [],
      isDocker: !isPodman,
      hasAllUsers: !isPodman && isMapped !== true,
      seccomp: isPodman ? await writeSeccompProfile(folder) : seccompProfile,
    };
  } catch (error) {
    throw asSandboxFailed(error, "start a container", config);
  }
}

export interface StartContainerOptions {
  readonly engine: Engine;
  readonly config: DockerConfig;
  readonly owner: Ownership;
  readonly shape: Shape;
  readonly host: EngineFacts;
  /** The guest daemon's command, and the program that it loads. */
  readonly guest: FirstCommand;
  /** That it has to do with. */
  readonly mountedLayer: LayerMounts | undefined;
}

export interface StartedContainer {
  readonly container: Container;
  /** The options that it was made with. */
  readonly requested: ContainerCreateOptions;
  readonly evidence: Evidence;
}

/**
 * Starts it with processes hidden from each other, if this engine can do that in either way.
 *
 * @throws SandboxFailed
 */
export async function startContainer(
  options: StartContainerOptions,
  log: Log,
  signal: AbortSignal,
): Promise<StartedContainer> {
  const { config, owner, host, shape, guest, mountedLayer } = options;
  const { hiding } = host;
  if (mountsAgents(config))
    await requireOutside(config.dataFolder ?? defaultDataFolder(), shape.requiredPaths);
  const requested = containerOptions(shape, owner, config, guest.argv, host, mountedLayer);
  let container: Container | undefined;
  try {
    container = await create(options, requested, signal);
    // Meanwhile the guest daemon is loaded. It does nothing until the bridge greets it, once all of this is done.
    await container.start(guest.input, signal);
    const hidden = hiding === "exec" ? hideByExec(container, signal) : undefined;
    hidden?.catch(() => undefined);
    const applied = await container.inspect(signal);
    signal.throwIfAborted();
    // First: what the engine ignored explains why a command has failed or ended, and not the other way round.
    const evidence = { ...readBack(applied, requested, host.isDocker), "docker.hiding": hiding };
    const whyNot = await hidden;
    signal.throwIfAborted();
    await requireRunning(applied, container);
    const others = unaskedVolumes(applied, requested);
    if (whyNot === undefined && others.length === 0) return { container, requested, evidence };
    // A command in a container that is just ending fails too, which says nothing about this engine.
    const ended = whyNot === undefined ? undefined : await container.whyEnded(signal, likelyRunsMs);
    if (ended !== undefined) throw ended;
    if (host.imageVolumes.length === 0) host.imageVolumes = others;
    if (whyNot !== undefined) host.hiding = isMissing.test(whyNot) ? "none" : "drop";
    log.debug({ whyNot, others }, "a container is made again, with what the first one showed");
  } catch (error) {
    const isExplained = error instanceof SandboxFailed || signal.aborted;
    const ended = isExplained ? undefined : await container?.whyEnded(signal).catch(() => undefined);
    // What can't be removed now is the reaper's.
    await container?.destroy().catch(() => undefined);
    throw asSandboxFailed(ended ?? error, "start a container", config);
  }
  await container.destroy();
  return startContainer(options, log, signal);
}

/** Milliseconds that an engine is asked whether a container has ended which most likely runs. */
const likelyRunsMs = 500;

/** An image without `mount`. */
const isMissing = /executable file not found|no such file or directory|mount: (?:command )?not found/i;

/** Not given up while the engine may be making it: a container that nobody knows of would stay until the reaper finds it. */
async function create(
  { engine, config }: StartContainerOptions,
  requested: ContainerCreateOptions,
  signal: AbortSignal,
): Promise<Container> {
  const hasVolume = requested.HostConfig?.Tmpfs?.[config.bridge.folder] === undefined;
  const make = async () => {
    const { id } = await engine.createContainer({
      ...requested,
      abortSignal: signalWithin(config.requestTimeoutMs),
    });
    return new Container(engine, id, config, hasVolume);
  };
  try {
    return await make();
  } catch (error) {
    if (statusOf(error) !== 404 || config.pull !== "missing") throw error;
    await pull(engine, config.image, signal);
    return await make();
  }
}

async function pull(engine: Engine, image: string, signal: AbortSignal): Promise<void> {
  const progress = await engine.pull(image, { abortSignal: signal });
  await new Promise<void>((resolve, reject) => {
    engine.modem.followProgress(progress, (error) => (error === null ? resolve() : reject(error)));
  });
}

/** @returns why /proc can't be remounted by such a command; undefined if it was remounted. */
async function hideByExec(container: Container, signal: AbortSignal): Promise<string | undefined> {
  const { code, output } = await container.run(["/bin/sh", "-c", remount], signal, { Privileged: true });
  return code === 0 ? undefined : output;
}

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

/** @throws SandboxFailed with what a container that has ended wrote at last */
export async function requireRunning({ State }: ContainerInspectInfo, container: Container): Promise<void> {
  if (State.Running) return;
  const code = State.ExitCode;
  throw new SandboxFailed(
    `The container's first command ended with exit code ${code}: ${await container.lastWords()}`,
  );
}

/**
 * Reads back which settings the engine applied to a container, which may have ended.
 *
 * @param isDocker whether the engine repeats settings as they were asked, unlike Podman.
 * @throws SandboxFailed where that isn't what was asked for.
 */
export function readBack(
  { Id, Image, Config, HostConfig: applied, Mounts, NetworkSettings }: ContainerInspectInfo,
  { HostConfig: asked = {}, User }: ContainerCreateOptions,
  isDocker: boolean,
): Evidence {
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
function unaskedVolumes(
  { Mounts }: Pick<ContainerInspectInfo, "Mounts">,
  { HostConfig: asked = {} }: ContainerCreateOptions,
): readonly string[] {
  const targets = (asked.Mounts ?? []).map(({ Target }) => Target);
  const found = Mounts.filter(({ Type }) => Type === "volume").map(({ Destination }) => Destination);
  return found.filter((path) => !targets.includes(path));
}
