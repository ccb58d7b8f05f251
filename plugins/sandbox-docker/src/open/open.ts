import { join } from "node:path/posix";
import type { Ownership } from "@ambit/backend-kit";
import { openRemoteSandbox, type RemoteSandbox } from "@ambit/bridge";
import type { Evidence, SandboxSpec, Scope } from "@ambit/core/plugin";
import { openSessionBroker } from "@ambit/egress/credentials";
import type { Lookup } from "@ambit/egress/proxy";
import type { ContainerCreateOptions } from "dockerode";
import type { DockerConfig } from "../config.js";
import { type Engine, within } from "../engine/engine.js";
import { asSandboxFailed, statusOf } from "../engine/failure.js";
import { Container } from "./container.js";
import { type Hiding, hideByExec } from "./hiding.js";
import { openWayOut, type WayOut } from "./network.js";
import { copyRoot, mountsAgents, orderOf } from "./order.js";
import { readBack } from "./read-back.js";

/** What tests and probes open a sandbox with, in place of the host's own. */
export type TestOptions = Pick<OpenOptions, "lookup" | "trusted">;

/** What the first sandbox found out about an engine. */
export interface EngineFacts {
  hiding: Hiding;
}

export interface OpenOptions {
  readonly engine: Engine;
  readonly config: DockerConfig;
  readonly owner: Ownership;
  readonly host: EngineFacts;
  /** How the boundary's proxy resolves names. Default: as this host does. */
  readonly lookup?: Lookup | undefined;
  /** Authorities in PEM, in place of the host's, of servers that credentials may be sent to. */
  readonly trusted?: readonly string[] | undefined;
  /** Called once the container is gone. */
  onGone(): void;
}

const accessOf = { on: "write", workspace: "write", readonly: "read", off: "none" } as const;

/** @throws SandboxFailed */
export async function openSandbox(
  options: OpenOptions,
  spec: SandboxSpec,
  scope: Scope,
): Promise<RemoteSandbox> {
  const { config, lookup, trusted, onGone } = options;
  const { network, filesystem } = spec.boundary;
  const { trustedAuthorities } = config;
  const broker = await openSessionBroker(spec.secrets, {
    ...{ plugin: "sandbox-docker", trustedAuthorities, trusted },
  });
  const started = await startContainer(options, spec, scope.signal);
  const { container, evidence } = started;
  let wayOut: WayOut | undefined;
  const destroy = async () => {
    await wayOut?.close();
    await container.destroy();
    onGone();
  };
  const sandbox = await openRemoteSandbox(
    {
      platform: {
        openDirectPipe: (argv, signal) => container.openDirectPipe(argv, signal),
        whyLost: (signal) => container.whyLost(signal),
        upload: (path, content, signal) => container.upload(path, content, signal),
        destroy,
      },
      spec,
      bridge: config.bridge,
      evidence,
      ownSystem: true,
      unprivileged: true,
      workspace: accessOf[filesystem.mode],
      ...(mountsAgents(config) ? { copyRoot } : {}),
      environment: (command) => wayOut?.environment(command) ?? {},
      ...(broker === undefined ? {} : { placeholders: broker.placeholders }),
    },
    scope,
  );
  if (network.mode !== "allowlist") return sandbox;
  try {
    const folder = join(config.bridge.folder, spec.id);
    wayOut = await openWayOut({ sandbox, container, spec, folder, broker, lookup, signal: scope.signal });
    return sandbox;
  } catch (error) {
    await sandbox.close();
    throw error;
  }
}

interface Started {
  readonly container: Container;
  readonly evidence: Evidence;
}

/** With processes hidden from each other where this engine can do so in any way. */
async function startContainer(
  options: OpenOptions,
  spec: SandboxSpec,
  signal: AbortSignal,
): Promise<Started> {
  const { config, owner, host } = options;
  const { hiding } = host;
  const order = orderOf(spec, owner, config, hiding);
  let container: Container | undefined;
  try {
    container = await create(options, order, hiding, signal);
    await container.start(signal);
    const [evidence, whyNot] = await Promise.all([
      readBack(container, order, signal),
      hiding === "exec" ? hideByExec(container, signal) : undefined,
    ]);
    signal.throwIfAborted();
    if (whyNot === undefined) return { container, evidence: { ...evidence, "docker.hiding": hiding } };
    spec.log.debug({ why: whyNot }, "the engine starts no command with all rights");
  } catch (error) {
    await container?.destroy();
    throw asSandboxFailed(error, "start a container", config);
  }
  await container.destroy();
  host.hiding = "drop";
  return startContainer(options, spec, signal);
}

async function create(
  { engine, config }: OpenOptions,
  order: ContainerCreateOptions,
  hiding: Hiding,
  signal: AbortSignal,
): Promise<Container> {
  const hasVolume = order.HostConfig?.Tmpfs?.[config.bridge.folder] === undefined;
  const make = async () => {
    const { id } = await engine.createContainer({ ...order, abortSignal: within(config, signal) });
    return new Container(engine, id, config, { hasVolume, hiding });
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
