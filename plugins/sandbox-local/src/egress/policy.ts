import ipaddr from "ipaddr.js";
import { readHost } from "./target.js";

/** Names that may be reached. They never match an address, and never lift the refusal of a special address. */
export interface HostRule {
  /** As written, for receipts. */
  readonly text: string;
  /** `exact` matches the name alone; `suffix` (`*.name`) every name below it, not the name itself. */
  readonly match: "exact" | "suffix";
  readonly name: string;
  /** Absent: every port. */
  readonly port?: number;
}

/** Addresses that may be reached, by address, or through a listed name. */
export interface RangeRule {
  readonly text: string;
  readonly network: ipaddr.IPv4 | ipaddr.IPv6;
  /** Length of the prefix in bits. */
  readonly prefix: number;
}

/** What the run may connect to. Under `deny-all` no name is resolved either. */
export type Policy =
  | { readonly mode: "deny-all" }
  | {
      readonly mode: "allowlist";
      readonly hosts: readonly HostRule[];
      readonly ranges: readonly RangeRule[];
    };

export interface RuleProblem {
  readonly code:
    | "host-empty"
    | "host-invalid"
    | "host-is-address"
    | "host-wildcard"
    | "port-invalid"
    | "range-invalid";
  readonly message: string;
}

export type Parsed<Rule> =
  | { readonly ok: true; readonly rule: Rule }
  | { readonly ok: false; readonly problem: RuleProblem };

/** Parses `name`, `*.name`, either with `:port`. Case, a trailing dot and IDN are brought to one spelling. */
export function parseHostRule(text: string): Parsed<HostRule> {
  const problem = (code: RuleProblem["code"], message: string): Parsed<HostRule> => ({
    ok: false,
    problem: { code, message: `${JSON.stringify(text)}: ${message}` },
  });
  if (text === "") return problem("host-empty", "a host rule is a name, or *.name");
  const bracketed = text.startsWith("[");
  if (bracketed || text.split(":").length > 2) {
    return problem(
      "host-is-address",
      "a host rule takes names: list the address as a range, such as ::1/128",
    );
  }
  const [host = "", portText] = text.split(":");
  const port = portText === undefined ? undefined : Number(portText);
  if (portText !== undefined && !(/^\d{1,5}$/.test(portText) && Number(port) >= 1 && Number(port) <= 65535)) {
    return problem("port-invalid", "the port is a number between 1 and 65535");
  }
  const suffix = host.startsWith("*.");
  const bare = suffix ? host.slice(2) : host;
  if (bare.includes("*")) {
    return problem(
      "host-wildcard",
      "a * stands only in front, as *.name; for every host turn the network on",
    );
  }
  const reading = readHost(bare);
  if (!reading.ok) return problem("host-invalid", reading.why);
  if (reading.kind === "address") {
    return problem(
      "host-is-address",
      `a host rule takes names: list the address as the range ${reading.host}/32`,
    );
  }
  return {
    ok: true,
    rule: {
      text,
      match: suffix ? "suffix" : "exact",
      name: reading.host,
      ...(port === undefined ? {} : { port }),
    },
  };
}

/** Parses an IPv4 or IPv6 CIDR range; a single address counts as /32 or /128. */
export function parseRange(text: string): Parsed<RangeRule> {
  const problem = (message: string): Parsed<RangeRule> => ({
    ok: false,
    problem: { code: "range-invalid", message: `${JSON.stringify(text)}: ${message}` },
  });
  const parts = /^([0-9a-fA-F.:]+)(?:\/(\d{1,3}))?$/.exec(text);
  const address = parts?.[1] ?? "";
  // Four plain decimals only: `010.0.0.0/8` is 8.0.0.0 to one parser and 10.0.0.0 to the next.
  const isIPv4 = ipaddr.IPv4.isValidFourPartDecimal(address) && !/(^|\.)0\d/.test(address);
  if (!isIPv4 && !(address.includes(":") && ipaddr.IPv6.isValid(address))) {
    return problem("a range is an address and a prefix length, such as 203.0.113.0/24 or 2001:db8::/32");
  }
  const network = ipaddr.parse(address);
  const width = network.kind() === "ipv4" ? 32 : 128;
  const prefix = parts?.[2] === undefined ? width : Number(parts[2]);
  if (prefix > width) return problem(`the prefix length is at most ${width}`);
  if (network instanceof ipaddr.IPv6 && network.isIPv4MappedAddress()) {
    return problem("an IPv4-mapped range is never dialled: write it as an IPv4 range");
  }
  const first =
    network.kind() === "ipv4"
      ? ipaddr.IPv4.networkAddressFromCIDR(`${address}/${prefix}`)
      : ipaddr.IPv6.networkAddressFromCIDR(`${address}/${prefix}`);
  if (first.toString() !== network.toString()) {
    return problem(`bits are set beyond the prefix: write ${first.toString()}/${prefix}`);
  }
  return { ok: true, rule: { text, network, prefix } };
}
