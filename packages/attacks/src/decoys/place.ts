import { readFileSync } from "node:fs";
import { isIPv4 } from "node:net";

/** The address of a listener, as a program would write it. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** The same by a name, with the name's address. */
export interface NamedEndpoint extends Endpoint {
  readonly address: string;
}

/** Every name in it is listed by an allowlist of the kit. */
export const listedZone = "ambit-listed.test";
/** No name in it is listed. */
const unlistedZone = "ambit-unlisted.test";

/** Addresses of this host where decoys and listed servers listen: both IPv4, and reached from where the guard connects. */
export interface DecoyAddresses {
  /** Where listed servers and hosts of credentials listen, and decoys beside them. */
  readonly address: string;
  /** What no boundary lists: names that change lead here too. */
  readonly neighbour: string;
}

/** Where decoys listen, and the names that lead there. */
export interface DecoyPlace extends DecoyAddresses {
  /** Boundaries list it for every port. */
  readonly listedName: string;
  /** Another name of the address. Undefined: one that this host's hosts file has. */
  readonly unlistedName: string | undefined;
  /** Undefined: nothing there listens over IPv6. */
  readonly address6: string | undefined;
}

export const loopback: DecoyPlace = {
  address: "127.0.0.1",
  neighbour: "127.0.0.2",
  listedName: "localhost",
  unlistedName: undefined,
  address6: "::1",
};

/** @throws TypeError for anything but two IPv4 addresses. */
export function decoyPlaceAt({ address, neighbour }: DecoyAddresses): DecoyPlace {
  for (const [field, value] of Object.entries({ address, neighbour })) {
    if (!isIPv4(value)) throw new TypeError(`${field} must be an IPv4 address of this host, not ${value}`);
  }
  if (address === neighbour) throw new TypeError(`neighbour must be another address than ${address}`);
  const [listedName, unlistedName] = [`here.${listedZone}`, `decoy.${unlistedZone}`];
  return { address, neighbour, listedName, unlistedName, address6: undefined };
}

/** Every entry of an allowlist that opens one port of an address. */
export const entryOf = ({ host, port }: { readonly host: string; readonly port: number }) =>
  host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;

/** One of the decoys by a name in this host's hosts file, other than `localhost`. No resolver is asked. */
export function endpointByAnotherName(four: Endpoint, six: Endpoint | undefined): NamedEndpoint | undefined {
  for (const line of hostsFile().split("\n")) {
    const [address, ...names] = line.replace(/#.*/, "").trim().split(/\s+/);
    const endpoint = address === "127.0.0.1" ? four : address === "::1" ? six : undefined;
    const host = names.find((name) => name !== "localhost");
    if (endpoint !== undefined && host !== undefined)
      return { host, port: endpoint.port, address: endpoint.host };
  }
  return undefined;
}

function hostsFile(): string {
  try {
    return readFileSync("/etc/hosts", "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
    throw error;
  }
}

/** A server that answers with the decoys' secret, over TCP and UDP. */
export interface NearDecoy {
  readonly host: string;
  readonly tcp: number;
  readonly udp: number;
}

/** Where a sandbox without limits gets to: a decoy of the kit, or an author's own server, which says anything. */
export type NearTarget = NearDecoy | { readonly beyond: Endpoint };
