import { isIPv4 } from "node:net";
import { domainToUnicode } from "node:url";
import ipaddr from "ipaddr.js";

export type HostReading =
  | { readonly ok: true; readonly host: string; readonly kind: "name" | "address" }
  | { readonly ok: false; readonly why: string };

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this refuses.
const forbiddenCharacters = /[\u0000-\u0020\u007f-\u009f%/\\@#?]/;
/** One label of a name as resolvers accept it; the underscore is for service names. */
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const maxNameLength = 253;

/**
 * Reads a host as a URL parser does (case, IDN, `127.1`, `0x7f.1`, decimal, octal), one trailing dot removed.
 * `raw` is a name, an IPv4 address in any spelling, or an IPv6 address in brackets.
 */
export function readHost(raw: string): HostReading {
  if (raw === "") return { ok: false, why: "the host is empty" };
  if (forbiddenCharacters.test(raw)) {
    return { ok: false, why: "the host has a control character, a space, or one of % / \\ @ # ?" };
  }
  if (raw.startsWith("[") ? !raw.endsWith("]") : raw.includes(":")) {
    return { ok: false, why: "the host must be only a name or an address" };
  }
  let url: URL;
  try {
    url = new URL(`http://${raw}/`);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return { ok: false, why: "the host is not a valid name or address" };
  }
  const canonical = url.hostname;
  if (canonical.startsWith("[")) {
    return { ok: true, kind: "address", host: ipaddr.parse(canonical.slice(1, -1)).toString() };
  }
  // The URL parser has normalised every other spelling to four decimals; ipaddr.js would throw for a name.
  if (isIPv4(canonical)) return { ok: true, kind: "address", host: canonical };
  const name = canonical.endsWith(".") ? canonical.slice(0, -1) : canonical;
  if (name.length > maxNameLength || !name.split(".").every(isLabel)) {
    return { ok: false, why: "the host is not a valid DNS name" };
  }
  return { ok: true, kind: "name", host: name };
}

/** Some versions of Node accept invalid punycode: decoding then returns it unchanged. */
function isLabel(label: string): boolean {
  return LABEL.test(label) && !(label.startsWith("xn--") && domainToUnicode(label) === label);
}
