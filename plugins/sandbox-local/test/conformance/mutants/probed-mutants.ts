import type { Capability } from "@ambit/core/plugin";
import type { Patch } from "./make-mutant.js";

/** A local sandbox without one of its mechanisms, and what its own probe then says. */
export interface ProbedMutant {
  readonly name: string;
  readonly patches: readonly Patch[];
  readonly capability: Capability;
  readonly reason: RegExp;
  /** The mechanism matters only if the runner is root. */
  readonly needsRoot?: boolean;
}

const plugin = (file: string, find: string, replace: string): readonly Patch[] => [
  { of: "plugin", file, find, replace },
];

export const probedMutants: readonly ProbedMutant[] = [
  {
    name: "groups not joined",
    needsRoot: true,
    patches: plugin("confined/jail.js", "echo 0 >&", ": >&"),
    capability: "resources.processes",
    reason: /its limits don't hold for it/,
  },
  {
    name: "protected paths forgotten",
    patches: plugin(
      "confined/files/workspace-rules.js",
      "await findProtectedPaths(folder, config.protectedPaths, this.#repositories)",
      "[]",
    ),
    capability: "filesystem.workspace-only",
    reason: /write-protected, move-protected/,
  },
  {
    name: "readable and denied paths forgotten",
    patches: plugin(
      "confined/files/workspace-rules.js",
      "prepareMounts(folder, pathRules(filesystem, kept)",
      "prepareMounts(folder, pathRules({ ...filesystem, readable: [], denied: [] }, kept)",
    ),
    capability: "filesystem.workspace-only",
    reason: /write-readable, read-denied, write-denied/,
  },
  {
    name: "hard links not searched",
    patches: plugin("confined/files/workspace-rules.js", "links > paths.length", "false"),
    capability: "filesystem.workspace-only",
    reason: /changed through a hard link/,
  },
  {
    name: "data folder inside a shown path",
    patches: plugin("confined/files/required-paths.js", "covered.add(", "String("),
    capability: "filesystem.host-hidden",
    reason: /enter-data-folder/,
  },
  {
    name: "channel open to every user",
    patches: plugin("expose/channel.js", "chmod(path, 0o600)", "chmod(path, 0o666)"),
    capability: "network.deny",
    reason: /another session's user reached its channel/,
    needsRoot: true,
  },
  {
    name: "workspace open to every user",
    patches: plugin("folders/data-folder.js", "mode: 0o700", "mode: 0o755"),
    capability: "filesystem.host-hidden",
    reason: /another session's user reached its workspace, home/,
    needsRoot: true,
  },
  {
    name: "inbound ports not looked up in the list",
    patches: plugin("expose/channel.js", "boundary.inbound?.includes(port) !== true", "false"),
    capability: "inbound.ports",
    reason: /a port that isn't listed was reached/,
  },
  {
    name: "inbound connections of all sessions",
    patches: [
      ...plugin("confined/session.js", "#jails = new Set();", "#jails = jails;"),
      ...plugin(
        "confined/session.js",
        "export class ConfinedSandbox",
        "const jails = new Set();\nexport class ConfinedSandbox",
      ),
    ],
    capability: "inbound.ports",
    reason: /another session's server was reached/,
  },
];
