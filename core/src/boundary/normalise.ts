import type { Issue, Port, SandboxPermission } from "../contract/index.js";
import type { Boundary, FilesystemBoundary, NetworkBoundary, NetworkRule } from "./boundary.js";
import { parseNetworkRule } from "./network-rules.js";

export interface NormalisedBoundary {
  readonly boundary: Boundary;
  /** Entries that can't be parsed. The boundary then allows less than the request says, and must not be used. */
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
        : { inbound: ports.map(({ port }) => port).sort((one, other) => one - other) }),
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
  const given = typeof filesystem === "object" ? filesystem : { mode: filesystem };
  const { readable = [], writable = [], denied = [] } = typeof filesystem === "object" ? filesystem : {};
  // Path lists restrict the workspace: without a mode, they imply `workspace`.
  const implied = readable.length + writable.length + denied.length > 0 ? "workspace" : "on";
  const mode = given.mode ?? implied;
  const boundary = { mode: mode === "restricted" ? "off" : mode, readable, writable, denied } as const;
  if (mode !== "on") return { boundary, issues: [] };
  const issues = Object.entries({ readable, writable, denied })
    .filter(([, paths]) => paths.length > 0)
    .map(([list]) => ({ path: `sandboxPermission.filesystem.${list}`, message: unenforced }));
  return { boundary, issues };
}
