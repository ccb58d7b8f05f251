import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { join } from "node:path/posix";
import type { Command, SandboxSpec } from "@ambit/core/plugin";
import type { CredentialBroker } from "../../credentials/broker.js";
import { type ImageAccess, installTrust } from "../../credentials/image-trust.js";
import type { Lookup } from "../../guarded-lookup.js";
import type { OwnServer } from "../http/own-address.js";
import { clientEnvironment, directHosts, nodePreload } from "./client-environment.js";
import { openSessionProxy } from "./session-proxy.js";

export interface SessionEgress {
  /** Variables that make a process use the proxy and trust it. */
  environment(command: Command): Readonly<Record<string, string>>;
  close(): Promise<void>;
}

export interface SessionEgressOptions {
  /** Such as the bridge's `RemoteSandbox`: gives a server all connections to the exposures' port inside. */
  readonly sandbox: { handOver(server: Server): Promise<OwnServer> };
  readonly access: ImageAccess;
  readonly spec: SandboxSpec;
  /** The folder for Ambit's own files inside the sandbox. */
  readonly folder: string;
  readonly broker: CredentialBroker | undefined;
  readonly lookup: Lookup | undefined;
  readonly signal: AbortSignal;
}

/**
 * The only way out of a sandbox without a network: the filtering proxy on the runner, at the port of the exposures
 * inside.
 *
 * @throws SandboxFailed
 */
export async function openSessionEgress(options: SessionEgressOptions): Promise<SessionEgress> {
  const { sandbox, access, spec, folder, broker, lookup, signal } = options;
  const preload = join(folder, "node-proxy.cjs");
  await access.upload(preload, await readFile(nodePreload), signal);
  const trust = broker && (await installTrust(access, broker, join(folder, "trust"), signal));
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
