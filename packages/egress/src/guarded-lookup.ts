import { type LookupAddress, type LookupAllOptions, lookup as systemLookup } from "node:dns";
import type { LookupFunction } from "node:net";

/** `dns.lookup` for all addresses of a name; tests put their own names in its place. */
export type Lookup = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** A name leads to an address that is closed to whoever asked. */
export class AddressRefused extends Error {
  override readonly name = "AddressRefused";
}

/**
 * A `lookup` for sockets: resolves once, and lets the connection be made only if `whyClosed` objects to none of the
 * addresses, because which one is dialled is chance. A literal address is never looked up: check it before.
 *
 * @param whyClosed why an address is closed, as in "10.0.0.1 is private"; undefined when it is open.
 */
export function guardedLookup(
  whyClosed: (address: string) => string | undefined,
  lookup: Lookup = systemLookup,
): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, []);
      const objections = addresses.flatMap(({ address }) => whyClosed(address) ?? []);
      const [first] = addresses;
      if (objections.length > 0 || first === undefined) {
        const why = objections.length === 0 ? "it has no address" : [...new Set(objections)].join("; ");
        return callback(new AddressRefused(`${hostname}: ${why}`), []);
      }
      return options.all === true ? callback(null, addresses) : callback(null, first.address, first.family);
    });
  };
}
