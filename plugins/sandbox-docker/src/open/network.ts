import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path/posix";
import type { RemoteSandbox } from "@ambit/bridge";
import type { Command, SandboxSpec } from "@ambit/core/plugin";
import type { CredentialBroker } from "@ambit/egress/credentials";
import {
  clientEnvironment,
  directHosts,
  type Lookup,
  nodePreload,
  openSessionProxy,
} from "@ambit/egress/proxy";
import type { Container } from "./container.js";
import { bringTrust } from "./trust.js";

export interface WayOut {
  /** Variables that make a process use the proxy and trust it. */
  environment(command: Command): Readonly<Record<string, string>>;
  close(): Promise<void>;
}

export interface WayOutOptions {
  readonly sandbox: Pick<RemoteSandbox, "handOver">;
  readonly container: Container;
  readonly spec: SandboxSpec;
  /** The folder for Ambit's own files inside the sandbox. */
  readonly folder: string;
  readonly broker: CredentialBroker | undefined;
  readonly lookup: Lookup | undefined;
  readonly signal: AbortSignal;
}

/** A session's only way out: the filtering proxy on the runner, at the port of the exposures inside. */
export async function openWayOut(options: WayOutOptions): Promise<WayOut> {
  const { sandbox, container, spec, folder, broker, lookup, signal } = options;
  const preload = join(folder, "node-proxy.cjs");
  await container.upload(preload, await readFile(nodePreload), signal);
  const trust = broker && (await bringTrust(container, broker, join(folder, "trust"), signal));
  const server = createServer({ allowHalfOpen: true });
  const own = await sandbox.handOver(server);
  const opened = await openSessionProxy({ spec, listen: { server }, own, lookup, credentials: broker });
  const proxy = `http://127.0.0.1:${own.port}`;
  const direct = directHosts(spec.boundary.network);
  return {
    environment: ({ role = "tool", env }) => ({
      ...(trust && broker?.environment(role, trust, env)),
      ...clientEnvironment({ proxy, direct, preload, nodeOptions: env.NODE_OPTIONS }),
    }),
    close: () => opened.close(),
  };
}
