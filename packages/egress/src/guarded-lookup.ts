import { lookup as systemLookup } from "node:dns/promises";
import { isIPv6, type LookupFunction } from "node:net";
import { networkInterfaces } from "node:os";
import { messageOf } from "@ambit/core/plugin";

/** Resolves a name to all its addresses; rejects if there is none. Replaced in tests. */
export type Lookup = (name: string) => Promise<readonly string[]>;

export const lookupOnThisHost: Lookup = async (name) =>
  (await systemLookup(name, { all: true, verbatim: true })).map(({ address }) => address);

/** A name resolves to an address that the caller may not connect to. */
export class AddressRefused extends Error {
  override readonly name = "AddressRefused";
}

/**
 * A `lookup` for sockets: resolves once, and allows the connection only if `whyClosed` refuses none of the
 * addresses, because which one is used is random. A literal address is never looked up: check it before.
 *
 * @param whyClosed why an address is refused, as in "10.0.0.1 is private"; undefined if it is allowed.
 */
export function guardedLookup(
  whyClosed: (address: string) => string | undefined,
  lookup: Lookup = lookupOnThisHost,
): LookupFunction {
  return (hostname, { all, family }, callback) => {
    lookup(hostname).then(
      (found) => {
        const entries = found.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }));
        const addresses = entries.filter((entry) => isWanted(entry.family, family));
        const objections = addresses.flatMap(({ address }) => whyClosed(address) ?? []);
        const [first] = addresses;
        if (objections.length > 0 || first === undefined) {
          const why = objections.length === 0 ? "it has no address" : [...new Set(objections)].join("; ");
          return callback(new AddressRefused(`${hostname}: ${why}`), []);
        }
        return all === true ? callback(null, addresses) : callback(null, first.address, first.family);
      },
      (error: unknown) => callback(error instanceof Error ? error : new Error(messageOf(error)), []),
    );
  };
}

function isWanted(family: number, asked: number | "IPv4" | "IPv6" | undefined): boolean {
  if (asked === 4 || asked === "IPv4") return family === 4;
  return asked === 6 || asked === "IPv6" ? family === 6 : true;
}

/** The addresses of this host's interfaces, read anew. */
export const addressesOfThisHost = (): string[] =>
  Object.values(networkInterfaces()).flatMap((entries) => (entries ?? []).map((entry) => entry.address));
