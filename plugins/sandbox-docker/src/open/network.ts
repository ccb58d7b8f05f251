import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path/posix";
import type { OwnPort } from "@ambit/bridge";
import { type Command, type NetworkBoundary, SandboxFailed, type SandboxSpec } from "@ambit/core/plugin";
import type { CredentialBroker } from "@ambit/egress/credentials";
import { type EgressProxy, type Lookup, openEgressProxy } from "@ambit/egress/proxy";
import type { DockerConfig } from "../config.js";

/** A session's way out: the filtering proxy on the runner, at the port of the exposures inside. */
export async function openProxy(
  spec: SandboxSpec,
  config: DockerConfig,
  handOver: (server: ReturnType<typeof createServer>) => Promise<OwnPort>,
  lookup: Lookup | undefined,
  credentials: CredentialBroker | undefined,
): Promise<{
  readonly proxy: EgressProxy;
  environment(command: Command): Readonly<Record<string, string>>;
}> {
  const server = createServer({ allowHalfOpen: true });
  const own = await handOver(server);
  const proxy = await openEgressProxy({
    listen: { server },
    own,
    policy: spec.boundary.network,
    onDecision: ({ target, allowed, reason }) => {
      const host = target.host.includes(":") ? `[${target.host}]` : target.host;
      spec.onDecision({ target: `${host}:${target.port}`, allowed, reason });
    },
    onFault: (cause) => {
      spec.log.error({ sandbox: spec.id, fault: String(cause) }, "the boundary's proxy failed");
      spec.onFailure?.(new SandboxFailed("The boundary's proxy failed: the run has no network.", { cause }));
    },
    ...(lookup === undefined ? {} : { lookup }),
    ...(credentials === undefined ? {} : { credentials }),
  });
  const variables = proxyVariables(`http://127.0.0.1:${own.port}`, spec.boundary.network);
  const preload = `--require=${preloadPath(spec, config)}`;
  return {
    proxy,
    environment: ({ env }) => ({
      ...variables,
      NODE_OPTIONS: [env.NODE_OPTIONS ?? "", preload].join(" ").trim(),
    }),
  };
}

/** What makes Node's programs use the proxy well, as a file in the sandbox. */
export async function preloadFile(spec: SandboxSpec, config: DockerConfig): Promise<[path: string, Buffer]> {
  return [preloadPath(spec, config), await readFile(new URL("../../inside/node-fetch.cjs", import.meta.url))];
}

const preloadPath = ({ id }: SandboxSpec, { bridge }: DockerConfig) =>
  join(bridge.folder, id, "node-fetch.cjs");

/** What programs find the proxy by. Where loopback of the runner's host is listed, they ask the proxy for it. Pure. */
function proxyVariables(url: string, { rules }: NetworkBoundary): Record<string, string> {
  const listsLoopback = rules.some((rule) => rule.kind === "range" && rule.cidr.startsWith("127."));
  const direct = ["localhost", ...(listsLoopback ? [] : ["127.0.0.1", "127.0.0.0/8"]), "::1"].join();
  const names = { HTTP_PROXY: url, HTTPS_PROXY: url, ALL_PROXY: url, NO_PROXY: direct };
  const lowerCase = Object.entries(names).map(([name, value]) => [name.toLowerCase(), value]);
  // Node 22.21 and later heeds the variables with this one.
  return { ...names, ...Object.fromEntries(lowerCase), NODE_USE_ENV_PROXY: "1" };
}
