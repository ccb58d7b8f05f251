import { readHost } from "@ambit/core/plugin";

export function portOf(url: URL): number {
  return Number(url.port) || (url.protocol === "https:" ? 443 : 80);
}

/** The host as an address without brackets, when it is one. */
export function literalAddress({ hostname }: URL): string | undefined {
  const reading = readHost(hostname);
  return reading.ok && reading.kind === "address" ? reading.host : undefined;
}
