import { BlockList } from "node:net";
import type { OwnSandbox } from "@ambit/core";
import type { GitSource, RunRequest } from "@ambit/core/contract";
import {
  type Boundary,
  type GitService,
  type HiddenCredential,
  type NetworkRule,
  parseNetworkRule,
  readHost,
} from "@ambit/core/plugin";

/** The variable that holds the placeholder of a repository's credential. */
const credentialName = "AMBIT_SOURCE_CREDENTIAL";

export interface GitSandboxOptions {
  /** What asks for it: `workspace.sources[0]`. */
  readonly subject: string;
  readonly repository: Pick<GitSource, "url" | "credential">;
  readonly services: readonly GitService[];
  /** Further hosts, each with an optional `:port`. */
  readonly hosts?: readonly string[];
  readonly request: Pick<RunRequest, "sandboxPermission">;
  readonly reach: OperatorReach;
}

/** Where the operator lets sources and outputs lead. */
export interface OperatorReach {
  /** Private addresses that a host may have, as addresses or ranges. */
  readonly allowedRanges: readonly string[];
  /** Why an address that a request names may not be connected to; undefined if it may. */
  readonly whyForbidden: (address: string, port: number) => string | undefined;
}

/**
 * A sandbox for git alone: it reaches the repository's host and port and no other, with the limits of the run's own
 * sandbox. Pure.
 */
export function gitSandbox(options: GitSandboxOptions): OwnSandbox {
  const { subject, repository, services, hosts = [], request, reach } = options;
  const endpoint = endpointOf(repository.url);
  const endpoints = [endpoint, ...hosts.map((host) => (host.includes(":") ? host : `${host}:443`))];
  const rules = endpoints.flatMap((endpoint) => rulesFor(endpoint, reach));
  const boundary: Boundary = {
    network: { mode: "allowlist", rules: withoutRepeats(rules) },
    filesystem: { mode: "workspace", readable: [], writable: [], denied: [] },
    resources: request.sandboxPermission.resources ?? {},
    secrets: repository.credential === undefined ? "visible" : "hidden",
    enforcement: "strict",
  };
  return { subject, backend: "any", boundary, secrets: credentialOf(repository, services, endpoint) };
}

/** `host:port`, as rules have it. */
function endpointOf(url: string): string {
  const { hostname, port, protocol } = new URL(url);
  return `${hostname}:${port === "" ? (protocol === "http:" ? "80" : "443") : port}`;
}

/**
 * The host itself; for one with a private address, what the operator allows, at its port only. A rule that lists an address
 * opens it whatever it is, so a request's own address becomes one only if the operator's policy allows it.
 */
function rulesFor(endpoint: string, { allowedRanges, whyForbidden }: OperatorReach): readonly NetworkRule[] {
  const parsed = parseNetworkRule(endpoint);
  if (!("rule" in parsed)) return [];
  const { rule } = parsed;
  if (rule.kind === "range") {
    const [address = "", prefix] = rule.cidr.split("/");
    const isAllowed =
      prefix === (rule.family === 6 ? "128" : "32") && whyForbidden(address, rule.port ?? 443) === undefined;
    return isAllowed ? [rule] : [];
  }
  const ranges = allowedRanges.flatMap((range): NetworkRule[] => {
    const read = parseNetworkRule(range);
    if (!("rule" in read) || read.rule.kind !== "range") return [];
    return [rule.port === undefined ? read.rule : { ...read.rule, port: rule.port }];
  });
  return [rule, ...ranges];
}

function withoutRepeats(rules: readonly NetworkRule[]): readonly NetworkRule[] {
  return [...new Map(rules.map((rule) => [JSON.stringify(rule), rule])).values()];
}

function credentialOf(
  { url, credential }: Pick<GitSource, "url" | "credential">,
  services: readonly GitService[],
  endpoint: string,
): readonly HiddenCredential[] {
  if (credential === undefined) return [];
  const { value, as, paths = [] } = credential;
  // Some servers take the same repository with and without its suffix; git LFS always asks with it.
  const path = new URL(url).pathname.replace(/\.git$/, "");
  const repositoryPaths = [`${path}/*`, `${path}.git/*`];
  const access = [...services];
  return [
    { name: credentialName, value, hosts: [endpoint], as, paths: [...repositoryPaths, ...paths], access },
  ];
}

const allowedRangesSetting = "workspace.allowedRanges of the server's configuration";

/** Why this URL can't be used here; undefined if it can. */
export function whyNotReached(
  { url, credential }: { readonly url: string; readonly credential?: object | undefined },
  { allowedRanges, whyForbidden }: OperatorReach,
): string | undefined {
  const { protocol, hostname, port } = new URL(url);
  const reading = readHost(hostname);
  if (!reading.ok) return `must name a host: ${reading.why}`;
  if (protocol === "https:") {
    const reason =
      reading.kind === "name" ? undefined : whyForbidden(reading.host, port === "" ? 443 : Number(port));
    return reason && `leads where it may not: ${reason}; ${allowedRangesSetting} lists what may be reached`;
  }
  if (credential !== undefined) return "must begin with https://: a credential is sent only over TLS";
  if (reading.kind === "name" || !isWithin(reading.host, allowedRanges))
    return `must begin with https://; HTTP is only for addresses that ${allowedRangesSetting} lists`;
  return undefined;
}

function isWithin(address: string, ranges: readonly string[]): boolean {
  const list = new BlockList();
  for (const range of ranges) {
    const parsed = parseNetworkRule(range);
    if (!("rule" in parsed) || parsed.rule.kind !== "range") continue;
    const [network = "", prefix] = parsed.rule.cidr.split("/");
    list.addSubnet(network, Number(prefix), parsed.rule.family === 6 ? "ipv6" : "ipv4");
  }
  return list.check(address, address.includes(":") ? "ipv6" : "ipv4");
}
