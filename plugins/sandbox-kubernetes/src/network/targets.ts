import type { DialTarget } from "@ambit/backend-kit";

/** The kubelet, SSH, kube-proxy, a node exporter and the API server: on the node itself, which many policies don't cover. */
const nodePorts = [10_250, 22, 10_256, 9_100, 6_443];
const dnsPort = 53;
/** Of clouds, with their credentials: most of them, ECS, EKS, Azure, Alibaba, Oracle. */
const metadataServices: readonly DialTarget[] = [
  "169.254.169.254",
  "169.254.170.2",
  "169.254.170.23",
  "168.63.129.16",
  "100.100.100.200",
  "192.0.0.192",
  "fd00:ec2::254",
  "fd00:ec2::23",
].map((host) => ({ host, port: 80 }));
const nodeLocalResolver = "169.254.20.10";
/** Of other namespaces, where clusters have them. They lead to pods. */
const services: readonly DialTarget[] = [
  { host: "kubernetes.default.svc", port: 443 },
  { host: "kube-dns.kube-system.svc", port: dnsPort },
  { host: "kube-dns.kube-system.svc", port: dnsPort, protocol: "udp" },
  { host: "metrics-server.kube-system.svc", port: 443 },
];

export interface Surroundings {
  /** The API server as the runner reaches it. */
  readonly server: URL;
  readonly nodeAddresses: readonly string[];
  /** Environment of a container, one variable a line. */
  readonly environment: string;
  /** `/etc/resolv.conf` of a pod with the cluster's names. */
  readonly resolvers: string;
  /** `/proc/net/route`. */
  readonly routes: string;
  /** `/proc/net/ipv6_route`. */
  readonly routes6: string;
}

/** What a pod may reach without a policy, as far as it can be told without asking the cluster for more rights. Pure. */
export function candidates(
  surroundings: Surroundings,
  configured: readonly DialTarget[],
): readonly DialTarget[] {
  const { server, nodeAddresses, environment, resolvers, routes, routes6 } = surroundings;
  const variable = (name: string) => new RegExp(`^${name}=(.+)$`, "m").exec(environment)?.[1];
  const service = variable("KUBERNETES_SERVICE_HOST");
  const nameservers = [...resolvers.matchAll(/^nameserver\s+(\S+)/gm)].map(([, address = ""]) => address);
  const routers = [routerIn(routes), router6In(routes6)].filter((target) => target !== undefined);
  const targets: DialTarget[] = [
    ...configured,
    ...[...nodeAddresses, ...routers].flatMap((host) => nodePorts.map((port) => ({ host, port }))),
    ...(service === undefined
      ? []
      : [{ host: service, port: Number(variable("KUBERNETES_SERVICE_PORT") ?? 443) }]),
    { host: server.hostname.replace(/^\[|\]$/g, ""), port: Number(server.port || 443) },
    ...[...nameservers, nodeLocalResolver].flatMap((host): DialTarget[] => [
      { host, port: dnsPort },
      { host, port: dnsPort, protocol: "udp" },
    ]),
    ...services,
    ...metadataServices,
  ];
  const byName = new Map(
    targets.map((target) => [`${target.host} ${target.port} ${target.protocol ?? "tcp"}`, target]),
  );
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

/** The same for IPv6. A link-local address needs its link's name. */
export function router6In(routes: string): string | undefined {
  for (const line of routes.split("\n")) {
    const [destination, length, , , gateway = "", , , , , link] = line.trim().split(/\s+/);
    if (!/^0{32}$/.test(destination ?? "") || length !== "00" || !/^[0-9a-f]{32}$/.test(gateway)) continue;
    if (/^0{32}$/.test(gateway)) continue;
    const address = (gateway.match(/.{4}/g) ?? []).join(":");
    return /^fe[89ab]/.test(address) && link !== undefined ? `${address}%${link}` : address;
  }
  return undefined;
}
