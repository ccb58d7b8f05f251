/** What a request lets its run touch: the boundary, its network rules, and how they are derived from the request. */

import { isIPv4 } from "node:net";
import { domainToUnicode } from "node:url";
import ipaddr from "ipaddr.js";
import type { filesystemModes, Issue, networkModes, Port, SandboxPermission } from "./contract/index.js";

/** A name that the run may connect to: `example.com`, or `*.example.com` for every name below it. */
export interface HostRule {
  readonly kind: "host";
  /** The canonical name: lower case, IDNA, without a trailing dot and without the `*.`. */
  readonly name: string;
  readonly subdomains: boolean;
  /** Absent: every port. */
  readonly port?: number;
}

/** Addresses that the run may connect to. A single address is a range with a full prefix. */
export interface RangeRule {
  readonly kind: "range";
  /** A canonical CIDR range: `10.0.0.0/8`, `2001:db8::/32`. */
  readonly cidr: string;
  readonly family: 4 | 6;
  readonly port?: number;
}

export type NetworkRule = HostRule | RangeRule;

export interface NetworkBoundary {
  /** `off` also stands for an empty allowlist. */
  readonly mode: (typeof networkModes)[number];
  /** The rules of the allowlist, at least one; empty for any other mode. */
  readonly rules: readonly NetworkRule[];
}

export interface FilesystemBoundary {
  readonly mode: (typeof filesystemModes)[number];
  /** Paths relative to the workspace. */
  readonly readable: readonly string[];
  readonly writable: readonly string[];
  readonly denied: readonly string[];
}

export type ResourceLimits = NonNullable<SandboxPermission["resources"]>;

/** What the request lets the run touch, with shorthands resolved and every entry canonical. */
export interface Boundary {
  readonly network: NetworkBoundary;
  readonly filesystem: FilesystemBoundary;
  readonly resources: ResourceLimits;
  readonly secrets: "visible" | "hidden";
  /** The only ports inside that a connection from the runner may reach. Never empty. Absent: none. */
  readonly inbound?: readonly number[];
  readonly enforcement: "strict" | "best_effort";
}

/** Whether anything is restricted. If not, a sandbox has nothing to enforce. */
export function isRestricted(boundary: Boundary): boolean {
  return (
    boundary.network.mode !== "on" ||
    boundary.filesystem.mode !== "on" ||
    Object.values(boundary.resources).some((limit) => limit !== undefined) ||
    boundary.secrets === "hidden" ||
    boundary.inbound !== undefined
  );
}

/**
 * Variables that tell common tools the limits of a boundary. Without them, the tools see the whole host's processors and
 * memory, start as many workers, and are then slowed or killed. Pure.
 *
 * | limit | variables |
 * |---|---|
 * | `cpus`, rounded up | `GOMAXPROCS` (Go), `CARGO_BUILD_JOBS` (Cargo), `CMAKE_BUILD_PARALLEL_LEVEL` (CMake), `RAYON_NUM_THREADS` (Rayon), `OMP_NUM_THREADS` (OpenMP, NumPy, nproc), `PYTHON_CPU_COUNT` (Python) |
 * | `memoryMb` | `GOMEMLIMIT` (Go): nine tenths; `NODE_OPTIONS=--max-old-space-size` (Node): three quarters |
 *
 * The JVM has no such variable that it reads without a message on stderr.
 */
export function limitVariables({ cpus, memoryMb }: ResourceLimits): Readonly<Record<string, string>> {
  const jobs = cpus === undefined ? undefined : String(Math.max(1, Math.ceil(cpus)));
  return {
    ...(jobs === undefined
      ? {}
      : {
          GOMAXPROCS: jobs,
          CARGO_BUILD_JOBS: jobs,
          CMAKE_BUILD_PARALLEL_LEVEL: jobs,
          RAYON_NUM_THREADS: jobs,
          OMP_NUM_THREADS: jobs,
          PYTHON_CPU_COUNT: jobs,
        }),
    ...(memoryMb === undefined
      ? {}
      : {
          GOMEMLIMIT: `${Math.max(1, Math.floor(memoryMb * 0.9))}MiB`,
          NODE_OPTIONS: `--max-old-space-size=${Math.max(1, Math.floor(memoryMb * 0.75))}`,
        }),
  };
}

export type ParsedRule = { readonly rule: NetworkRule } | { readonly problem: string };

/**
 * Parses one allowlist entry: `name`, `*.suffix`, `address` or `range/prefix`, each with an optional `:port` (an IPv6
 * address is then in brackets). The rule is canonical: two spellings of one destination give equal rules. Pure.
 */
export function parseNetworkRule(entry: string): ParsedRule {
  const split = splitPort(entry);
  if (split === undefined) {
    return { problem: "must be a name, *.suffix, address or range, without scheme or path" };
  }
  const { destination, port } = split;
  if (port !== undefined && (port < 1 || port > 65_535)) return { problem: "port must be 1 to 65535" };
  const parsed = isAddress(destination) ? parseRange(destination) : parseHost(destination);
  return "problem" in parsed || port === undefined ? parsed : { rule: { ...parsed.rule, port } };
}

/** A rule as people write it: `*.example.com:443`, `10.0.0.0/8`. */
export function formatRule(rule: NetworkRule): string {
  const destination = rule.kind === "range" ? rule.cidr : `${rule.subdomains ? "*." : ""}${rule.name}`;
  if (rule.port === undefined) return destination;
  return rule.kind === "range" && rule.family === 6
    ? `[${destination}]:${rule.port}`
    : `${destination}:${rule.port}`;
}

interface Split {
  readonly destination: string;
  readonly port?: number;
}

function splitPort(entry: string): Split | undefined {
  const bracketed = /^\[([^\]]*:[^\]]*)\](\/\d+)?(?::(\d{1,5}))?$/.exec(entry);
  if (bracketed !== null) {
    const [, address = "", prefix = "", port] = bracketed;
    return { destination: address + prefix, ...(port === undefined ? {} : { port: Number(port) }) };
  }
  if (entry.includes("://")) return undefined;
  // More than one colon without brackets is an IPv6 address: its last part isn't a port.
  if (entry.split(":").length > 2) return { destination: entry };
  const parts = /^([^:]+)(?::(\d{1,5}))?$/.exec(entry);
  if (parts?.[1] === undefined) return undefined;
  return { destination: parts[1], ...(parts[2] === undefined ? {} : { port: Number(parts[2]) }) };
}

function isAddress(text: string): boolean {
  return text.includes("/") || text.includes(":") || ipaddr.IPv4.isValidFourPartDecimal(text);
}

function parseRange(text: string): { rule: RangeRule } | { problem: string } {
  const parts = /^([0-9a-fA-F.:]+)(?:\/(\d{1,3}))?$/.exec(text);
  const address = parts?.[1] ?? "";
  // Only four plain decimals are accepted: parsers disagree on whether `010.0.0.0/8` is 8.0.0.0 or 10.0.0.0.
  const isFour = ipaddr.IPv4.isValidFourPartDecimal(address);
  if (!isFour && !(address.includes(":") && ipaddr.IPv6.isValid(address))) {
    return { problem: "must be an address and a prefix length, such as 203.0.113.0/24 or 2001:db8::/32" };
  }
  const parsed = ipaddr.parse(address);
  const width = isFour ? 32 : 128;
  const prefix = parts?.[2] === undefined ? width : Number(parts[2]);
  if (prefix > width) return { problem: `must have a prefix length of at most ${width}` };
  if (parsed instanceof ipaddr.IPv6 && parsed.isIPv4MappedAddress()) {
    return { problem: "must be written as an IPv4 range: Ambit never connects to an IPv4-mapped address" };
  }
  const network = isFour
    ? ipaddr.IPv4.networkAddressFromCIDR(`${address}/${prefix}`)
    : ipaddr.IPv6.networkAddressFromCIDR(`${address}/${prefix}`);
  return { rule: { kind: "range", cidr: `${network.toString()}/${prefix}`, family: isFour ? 4 : 6 } };
}

function parseHost(text: string): { rule: HostRule } | { problem: string } {
  const subdomains = text.startsWith("*.");
  const bare = subdomains ? text.slice(2) : text;
  if (bare.includes("*")) {
    return {
      problem:
        "may have a * only at the beginning, as in *.example.com; to allow every host, turn the network on",
    };
  }
  const reading = readHost(bare);
  if (!reading.ok) return { problem: `must be a host name: ${reading.why}` };
  // The URL standard reads 127.1, 0x7f.1 and 2130706433 as addresses: a rule for a name would never match them.
  if (reading.kind === "address") return { problem: `must write an address as ${reading.host}` };
  if (subdomains && !reading.host.includes(".")) {
    return { problem: "must have a domain of two labels after the *" };
  }
  return { rule: { kind: "host", name: reading.host, subdomains } };
}

type HostReading =
  | { readonly ok: true; readonly host: string; readonly kind: "name" | "address" }
  | { readonly ok: false; readonly why: string };

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this refuses.
const forbiddenCharacters = /[\u0000-\u0020\u007f-\u009f%/\\@#?]/;
/** One label of a name as resolvers accept it; the underscore is for service names. */
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const maxNameLength = 253;

/**
 * Reads a host as a URL parser does (case, IDN, `127.1`, `0x7f.1`, decimal, octal), and removes one trailing dot.
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

/** A range of addresses as numbers: the first, and the one after the last. IPv6 addresses are rounded. */
interface Span {
  readonly from: number;
  readonly to: number;
}

/** All IPv4 addresses, and all public IPv6 addresses (2000::/3). */
const families = [
  { family: 4, all: { from: 0, to: 2 ** 32 } },
  { family: 6, all: { from: 2 ** 125, to: 2 ** 126 } },
] as const;

/**
 * The share of all addresses that ranges may not reach: a sixteenth is sixteen networks of `/8`, which is more than all private
 * networks together, and than any provider has. Such ranges list what is excluded rather than what is needed.
 */
const wideShare = 1 / 16;

/**
 * Whether ranges hold a sixteenth of the IPv4 addresses together, or of the public IPv6 addresses, on whatever ports:
 * `0.0.0.0/0`, sixteen ranges of `/8`, `2000::/3`. Names don't count. Pure.
 */
export function listsWideRanges(rules: readonly NetworkRule[]): boolean {
  return families.some(({ family, all }) => {
    const spans = rules.flatMap((rule) =>
      rule.kind === "range" && rule.family === family ? [spanOf(rule)] : [],
    );
    return countIn(spans, all) >= wideShare * (all.to - all.from);
  });
}

/** How many addresses of `all` are in the spans; an address in several spans counts once. */
function countIn(spans: readonly Span[], all: Span): number {
  let count = 0;
  let counted = all.from;
  for (const { from, to } of spans.toSorted((first, second) => first.from - second.from)) {
    const end = Math.min(to, all.to);
    count += Math.max(0, end - Math.max(from, counted));
    counted = Math.max(counted, end);
  }
  return count;
}

function spanOf({ cidr }: RangeRule): Span {
  const [network, prefix] = ipaddr.parseCIDR(cidr);
  const bytes = network.toByteArray();
  const from = bytes.reduce((number, byte) => 256 * number + byte, 0);
  return { from, to: from + 2 ** (8 * bytes.length - prefix) };
}

export interface NormalisedBoundary {
  readonly boundary: Boundary;
  /** The entries that can't be parsed. If there are any, the boundary allows less than the request, and must not be used. */
  readonly issues: readonly Issue[];
}

/** Resolves shorthands and makes entries canonical. An absent part means `on`; an empty list allows nothing. */
export function normaliseBoundary(
  permission: SandboxPermission,
  ports: readonly Pick<Port, "port">[] = [],
): NormalisedBoundary {
  const network = networkBoundary(permission.network);
  const filesystem = filesystemBoundary(permission.filesystem);
  return {
    boundary: {
      network: network.boundary,
      filesystem: filesystem.boundary,
      resources: permission.resources ?? {},
      secrets: permission.secrets ?? "visible",
      ...(ports.length === 0
        ? {}
        : { inbound: ports.map(({ port }) => port).sort((first, second) => first - second) }),
      enforcement: permission.enforcement,
    },
    issues: [...network.issues, ...filesystem.issues],
  };
}

const closed: NetworkBoundary = { mode: "off", rules: [] };

function networkBoundary(network: SandboxPermission["network"]): {
  boundary: NetworkBoundary;
  issues: readonly Issue[];
} {
  if (network === "off" || network === "restricted") return { boundary: closed, issues: [] };
  if (network === "on" || network === undefined) return { boundary: { mode: "on", rules: [] }, issues: [] };
  const path = "sandboxPermission.network.allowlist";
  const mode = network.mode ?? (network.allowlist === undefined ? "on" : "allowlist");
  if (mode !== "allowlist") {
    const contradicts = (network.allowlist?.length ?? 0) > 0;
    const message = `must be empty when the mode is "${mode}": remove it, or set the mode to "allowlist"`;
    return {
      boundary: mode === "off" ? closed : { mode: "on", rules: [] },
      issues: contradicts ? [{ path, message }] : [],
    };
  }
  const rules: NetworkRule[] = [];
  const issues: Issue[] = [];
  for (const [index, entry] of (network.allowlist ?? []).entries()) {
    const parsed = parseNetworkRule(entry);
    if ("rule" in parsed) rules.push(parsed.rule);
    else issues.push({ path: `${path}[${index}]`, message: parsed.problem });
  }
  return { boundary: rules.length === 0 ? closed : { mode: "allowlist", rules }, issues };
}

const unenforced =
  'must be empty when the mode is "on", where nothing would hold it: remove it, or set the mode to "workspace"';

function filesystemBoundary(filesystem: SandboxPermission["filesystem"]): {
  boundary: FilesystemBoundary;
  issues: readonly Issue[];
} {
  const wish = typeof filesystem === "object" ? filesystem : { mode: filesystem };
  const { readable = [], writable = [], denied = [] } = typeof filesystem === "object" ? filesystem : {};
  // Path lists restrict the workspace: without a mode, they imply `workspace`.
  const implied = readable.length + writable.length + denied.length > 0 ? "workspace" : "on";
  const mode = wish.mode ?? implied;
  const boundary = { mode: mode === "restricted" ? "off" : mode, readable, writable, denied } as const;
  if (mode !== "on") return { boundary, issues: [] };
  const issues = Object.entries({ readable, writable, denied })
    .filter(([, paths]) => paths.length > 0)
    .map(([list]) => ({ path: `sandboxPermission.filesystem.${list}`, message: unenforced }));
  return { boundary, issues };
}
