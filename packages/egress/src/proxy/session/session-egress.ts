import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { join } from "node:path/posix";
import type { Command, SandboxSpec } from "@ambit/core/plugin";
import type { CredentialBroker } from "../../credentials/broker.js";
import { type ImageTrust, trustInImage } from "../../credentials/image-trust.js";
import type { Lookup } from "../../guarded-lookup.js";
import type { OwnServer } from "../http/own-address.js";
import { clientEnvironment, directHosts, nodePreload } from "./client-environment.js";
import { openSessionProxy } from "./session-proxy.js";

export interface SessionEgress {
  /** Variables that make a process use the proxy and trust it. */
  environment(command: Command): Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** What the programs inside need to use a proxy. */
export interface ClientOptions extends ImageTrust {
  readonly spec: SandboxSpec;
  readonly broker: CredentialBroker | undefined;
  readonly signal: AbortSignal;
}

export interface SessionEgressOptions extends ClientOptions {
  /** Such as the bridge's `RemoteSandbox`: gives a server all connections to the exposures' port inside. */
  readonly sandbox: { handOver(server: Server): Promise<OwnServer> };
  readonly lookup: Lookup | undefined;
}

/**
 * The only way out of a sandbox without a network: the filtering proxy on the runner, at the port of the exposures
 * inside.
 *
 * @throws SandboxFailed
 */
export async function openSessionEgress(options: SessionEgressOptions): Promise<SessionEgress> {
  const { sandbox, spec, broker, lookup } = options;
  const environmentAt = await prepareClients(options);
  const server = createServer({ allowHalfOpen: true });
  const own = await sandbox.handOver(server);
  const opened = await openSessionProxy({ spec, listen: { server }, own, lookup, credentials: broker });
  return {
    environment: environmentAt(own.port, directHosts(spec.boundary.network)),
    close: () => opened.close(),
  };
}

/**
 * Brings what programs inside need to use a proxy.
 *
 * @returns their variables for a proxy at a port of the sandbox's loopback, and the hosts that they reach without it
 * @throws SandboxFailed
 */
export async function prepareClients({
  signal,
  ...trusting
}: Omit<ClientOptions, "spec">): Promise<
  (port: number, direct: readonly string[]) => SessionEgress["environment"]
> {
  const { access, folder } = trusting;
  const preload = join(folder, "node-proxy.cjs");
  await access.upload(preload, await readFile(nodePreload), signal);
  const trustedBy = await trustInImage(trusting, signal);
  return (port, direct) => (command) => ({
    ...trustedBy?.(command),
    ...clientEnvironment({
      proxy: `http://127.0.0.1:${port}`,
      direct,
      preload,
      given: command.env,
    }),
  });
}
