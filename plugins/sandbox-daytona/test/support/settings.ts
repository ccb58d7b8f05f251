import type { LoopbackDaytona, LoopbackOptions } from "@ambit/daytona-loopback";

/** Hosts outside, for a canary and for tests. They exist on the loopback's own network only. */
export const world = {
  address: { name: "address.example.test", address: "10.99.0.10", ports: [80] },
  name: { name: "name.example.test", address: "10.99.0.11", ports: [80] },
  other: { name: "other.example.test", address: "10.99.0.12", ports: [80, 7_777] },
} as const;

export function loopbackOptions(options: LoopbackOptions = {}): LoopbackOptions {
  const hosts = Object.values(world).map((host) => ({ ...host, ports: [...host.ports] }));
  return {
    snapshots: { root: { user: "root" }, unprivileged: { user: "root", privileged: false } },
    startDelayMs: 0,
    sessionGraceMs: 200,
    ...options,
    world: [...hosts, ...(options.world ?? [])],
  };
}

/** Where the loopback is, and its canary's targets. */
export function settingsFor(daytona: Pick<LoopbackDaytona, "apiKey" | "apiUrl">) {
  return {
    apiKey: daytona.apiKey,
    apiUrl: daytona.apiUrl,
    snapshot: "root",
    canary: {
      address: "10.99.0.10:80",
      name: "name.example.test:80",
      forbidden: ["other.example.test:80", "10.99.0.12:7777"],
      address6: "[fd99::10]:80",
      attemptMs: 1_500,
      // Here limits apply before a sandbox starts, unless a test changes that.
      settleMs: 0,
    },
  };
}
