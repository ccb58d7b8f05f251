import ipaddr from "ipaddr.js";

export function portOf(url: URL): number {
  return Number(url.port) || (url.protocol === "https:" ? 443 : 80);
}

/** The host as an address without brackets, when it is one. */
export function literalAddress({ hostname }: URL): string | undefined {
  const unbracketed = hostname.replace(/^\[|\]$/g, "");
  return ipaddr.isValid(unbracketed) ? unbracketed : undefined;
}
