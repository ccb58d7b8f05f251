import type { DialTarget } from "@ambit/backend-kit";

/** The kubelet, SSH, kube-proxy and a node exporter: on the node itself, which many policies don't cover. */
const nodePorts = [10_250, 22, 10_256, 9_100];
const dnsPort = 53;
const metadataService: DialTarget = { host: "169.254.169.254", port: 80 };
const nodeLocalResolver: DialTarget = { host: "169.254.20.10", port: dnsPort };

export interface Surroundings {
  /** The API server as the runner reaches it. */
  readonly server: URL;
  readonly nodeAddress: string | undefined;
  /** Environment of a container, one variable a line. */
  readonly environment: string;
  /** `/etc/resolv.conf` of a pod with the cluster's names. */
  readonly resolvers: string;
  /** `/proc/net/route`. */
  readonly routes: string;
}

/** What a pod may reach without a policy, as far as it can be told without asking the cluster for more rights. Pure. */
export function candidates(surroundings: Surroundings, given: readonly DialTarget[]): readonly DialTarget[] {
  const { server, nodeAddress, environment, resolvers, routes } = surroundings;
  const variable = (name: string) => new RegExp(`^${name}=(.+)$`, "m").exec(environment)?.[1];
  const service = variable("KUBERNETES_SERVICE_HOST");
  const nameservers = [...resolvers.matchAll(/^nameserver\s+(\S+)/gm)].map(([, address = ""]) => address);
  const router = routerIn(routes);
  const found: DialTarget[] = [
    ...given,
    ...(nodeAddress === undefined ? [] : nodePorts.map((port) => ({ host: nodeAddress, port }))),
    ...(router === undefined ? [] : nodePorts.map((port) => ({ host: router, port }))),
    ...(service === undefined
      ? []
      : [{ host: service, port: Number(variable("KUBERNETES_SERVICE_PORT") ?? 443) }]),
    { host: server.hostname.replace(/^\[|\]$/g, ""), port: Number(server.port || 443) },
    ...nameservers.map((host) => ({ host, port: dnsPort })),
    metadataService,
    nodeLocalResolver,
  ];
  const byName = new Map(found.map((one) => [`${one.host} ${one.port}`, one]));
  return [...byName.values()];
}

/** The default route's address: little-endian hexadecimal in the kernel's table. */
export function routerIn(routes: string): string | undefined {
  for (const line of routes.split("\n").slice(1)) {
    const [, destination, gateway] = line.trim().split(/\s+/);
    if (destination !== "00000000" || gateway === undefined || !/^[0-9A-F]{8}$/.test(gateway)) continue;
    return (gateway.match(/../g) ?? [])
      .reverse()
      .map((byte) => Number.parseInt(byte, 16))
      .join(".");
  }
  return undefined;
}
