import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { join } from "node:path/posix";
import { type Command, type NetworkBoundary, SandboxFailed, type SandboxSpec } from "@ambit/core/plugin";
import type { CredentialBroker } from "../credentials/broker.js";
import { type ImageTrust, trustInImage } from "../credentials/trust.js";
import type { Lookup } from "../guarded-lookup.js";
import { formatTarget } from "../target.js";
import type { EgressDecision } from "./gate.js";
import type { OwnServer } from "./http/own-response.js";
import { type EgressProxy, type EgressProxyOptions, openEgressProxy } from "./proxy.js";

/** Programs for every sandbox with the proxy. A backend mounts or copies them inside. */
export const nodePreload = new URL("../../inside/node-proxy.cjs", import.meta.url);

/** Joins standard input and output with a host and port, its arguments, by way of the proxy. For Node.js. */
export const tunnelProgram = new URL("../../inside/connect.cjs", import.meta.url);

export interface ClientEnvironmentOptions {
  /** The proxy's address as seen inside: `http://127.0.0.1:3128`. */
  readonly proxy: string;
  /** Hosts that programs reach without it. */
  readonly direct: readonly string[];
  /** Path of `nodePreload` inside. */
  readonly preload: string;
  /** The process's own variables, which the options here are added to. */
  readonly given: Readonly<Record<string, string>>;
}

/**
 * Hosts that programs reach without the proxy if inside there is only the sandbox's own loopback. If loopback addresses
 * of the runner are listed, programs use the proxy for `127.…`. Pure.
 */
export function directHosts({ rules }: NetworkBoundary): readonly string[] {
  const listsLoopback = rules.some((rule) => rule.kind === "range" && rule.cidr.startsWith("127."));
  return ["localhost", ...(listsLoopback ? [] : ["127.0.0.1", "127.0.0.0/8"]), "::1"];
}

/** Variables that make programs inside use the proxy. Pure. */
export function clientEnvironment({
  proxy,
  direct,
  preload,
  given,
}: ClientEnvironmentOptions): Readonly<Record<string, string>> {
  const names = { HTTP_PROXY: proxy, HTTPS_PROXY: proxy, ALL_PROXY: proxy, NO_PROXY: direct.join() };
  const lowerCase = Object.entries(names).map(([name, value]) => [name.toLowerCase(), value]);
  return {
    ...names,
    ...Object.fromEntries(lowerCase),
    // Node 22.21 and later supports the variables; older versions need the preload.
    NODE_USE_ENV_PROXY: "1",
    NODE_OPTIONS: [given.NODE_OPTIONS, `--require=${preload}`].filter(Boolean).join(" "),
    // The JVM itself reads options from no variable without printing it to every program's standard error.
    ...Object.fromEntries(
      javaTools.map((name) => [name, [javaOptions(proxy), given[name]].filter(Boolean).join(" ")]),
    ),
  };
}

/** Start scripts of build tools that pass options on to their JVM: Maven, Gradle, sbt. */
const javaTools = ["MAVEN_OPTS", "GRADLE_OPTS", "SBT_OPTS"];

/** Java's settings of a proxy. It connects to loopback without one. */
function javaOptions(proxy: string): string {
  const { hostname, port } = new URL(proxy);
  return ["http", "https"]
    .map((scheme) => `-D${scheme}.proxyHost=${hostname} -D${scheme}.proxyPort=${port}`)
    .join(" ");
}

export interface SessionProxyOptions {
  readonly spec: Pick<
    SandboxSpec,
    "id" | "boundary" | "upstreamProxy" | "onDecision" | "onFailure" | "isUnclaimed" | "log"
  >;
  readonly listen: EgressProxyOptions["listen"];
  readonly own: EgressProxyOptions["own"];
  readonly lookup?: EgressProxyOptions["lookup"] | undefined;
  readonly checks?: EgressProxyOptions["checks"] | undefined;
  readonly credentials?: CredentialBroker | undefined;
}

/**
 * The egress proxy of one sandbox. It reports every decision to the run, and its own failure ends the run, which must
 * not continue without a record.
 */
export function openSessionProxy({
  spec,
  listen,
  own,
  lookup,
  checks,
  credentials,
}: SessionProxyOptions): Promise<EgressProxy> {
  return openEgressProxy({
    listen,
    policy: spec.boundary.network,
    upstreamProxy: spec.upstreamProxy,
    ...reportsTo(spec),
    own,
    lookup,
    checks,
    credentials,
  });
}

/** How a proxy, wherever it runs, reports to a run. */
export const reportsTo = (spec: SessionProxyOptions["spec"]) => ({
  isUnclaimed: () => spec.isUnclaimed?.() === true,
  onDecision: ({ target, protocol: _, address: __, ...decision }: EgressDecision) =>
    spec.onDecision({ ...decision, target: formatTarget(target) }),
  onFault: (cause: unknown) => {
    spec.log.error({ sandbox: spec.id, fault: String(cause) }, "the boundary's proxy failed");
    spec.onFailure?.(new SandboxFailed("The boundary's proxy failed: the run has no network.", { cause }));
  },
});

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
