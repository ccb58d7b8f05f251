import { lookup as systemLookup } from "node:dns/promises";
import type { Capability } from "@ambit/core/plugin";
import type { Lookup } from "@ambit/egress";
import type { Patch } from "./make-mutant.js";

/** A local sandbox without one of its mechanisms, and the attacks that must catch it. */
export interface MutantCase {
  readonly name: string;
  readonly patches: readonly Patch[];
  readonly capability: Capability;
  readonly caughtBy: readonly string[];
  /** How the backend resolves names. Default: names that change their address. */
  readonly lookup?: Lookup;
  /** The mechanism matters only if the runner is root. */
  readonly needsRoot?: boolean;
}

const plugin = (file: string, find: string, replace: string): Patch => ({
  of: "plugin",
  file,
  find,
  replace,
});
const backendKit = (file: string, find: string, replace: string): Patch => ({
  of: "backend-kit",
  file,
  find,
  replace,
});
const core = (file: string, find: string, replace: string): Patch => ({ of: "core", file, find, replace });
const egress = (file: string, find: string, replace: string): Patch => ({
  of: "egress",
  file,
  find,
  replace,
});

/**
 * The backend checks each jail before anything starts in it. Here the check is off, so that the attacks have to notice.
 */
const noEvidence = plugin("confined/evidence.js", "if (wrong.length > 0)", "if (wrong.length > 1000)");

const noSeccomp: readonly Patch[] = [
  plugin("confined/arguments.js", "jail.descriptors.seccomp === undefined ?", "true ?"),
  plugin("confined/evidence.js", "export const filtered = 2;", "export const filtered = undefined;"),
];

export const mutants: readonly MutantCase[] = [
  {
    name: "root kept",
    needsRoot: true,
    patches: [
      noEvidence,
      plugin("confined/jail.js", "if (!isGuarded(first, expected))", "if (false)"),
      plugin(
        "confined/session.js",
        "process.getuid?.() === 0 ? await parts.lease(remains?.userIds ?? config.userIds) : undefined",
        "undefined",
      ),
    ],
    capability: "filesystem.workspace-only",
    caughtBy: ["filesystem.workspace-only/kernel-settings"],
  },
  {
    name: "environment of the launcher kept",
    patches: [
      plugin(
        "confined/jail.js",
        'PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"',
        "...process.env",
      ),
      plugin("confined/arguments.js", '"--clearenv",\n', ""),
    ],
    capability: "environment.named-only",
    caughtBy: ["environment.named-only/own"],
  },
  {
    name: "no seccomp, seen by the network",
    patches: noSeccomp,
    capability: "network.deny",
    caughtBy: ["network.deny/vsock", "network.deny/vsock-foreign-call", "network.deny/io-uring"],
  },
  {
    name: "no seccomp, seen by the keyring",
    patches: noSeccomp,
    capability: "process.contained",
    caughtBy: ["process.contained/keyring"],
  },
  {
    name: "descriptors inherited",
    patches: [plugin("confined/jail.js", "options.inheritable, session", "[], session")],
    capability: "filesystem.host-hidden",
    caughtBy: ["filesystem.host-hidden/inherited-descriptors"],
  },
  {
    name: "paths bound by name",
    patches: [
      backendKit(
        "safe-fs.js",
        "constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW",
        "constants.O_RDONLY | constants.O_DIRECTORY",
      ),
    ],
    capability: "filesystem.workspace-only",
    caughtBy: ["filesystem.workspace-only/link-for-the-runner"],
  },
  {
    name: "ancestors not pinned",
    patches: [plugin("confined/files/workspace-rules.js", "length < names.length", "length < 0")],
    capability: "filesystem.workspace-only",
    caughtBy: ["filesystem.workspace-only/denied-move-above"],
  },
  {
    name: "launcher killed instead of init",
    patches: [
      plugin("confined/jail.js", "this.#init = init;", "this.#init = init; this.launcher = child;"),
      plugin(
        "confined/jail.js",
        "this.#wasKilled ||= !hasEnded(this.#init);\n        endProcess(this.#init);",
        'this.launcher.kill("SIGKILL");',
      ),
      plugin("confined/jail.js", "endProcess(init);\n            await untilEnded(init);", ""),
      plugin("confined/arguments.js", '"--die-with-parent", ', ""),
    ],
    capability: "process.contained",
    caughtBy: ["process.contained/outlive-close"],
  },
  {
    name: "proxy shared between sessions",
    patches: [
      egress(
        "proxy/session.js",
        "policy: spec.boundary.network,",
        "policy: (shared.rules.push(...spec.boundary.network.rules), shared),",
      ),
      egress(
        "proxy/session.js",
        "export function openSessionProxy(",
        'const shared = { mode: "allowlist", rules: [] };\nexport function openSessionProxy(',
      ),
    ],
    capability: "network.allow-cidr",
    caughtBy: ["network.allow-cidr/another-sessions-list"],
  },
  {
    name: "name not canonical",
    patches: [
      core(
        "boundary.js",
        'if (raw === "")',
        'if (!isIPv4(raw)) return { ok: true, kind: "name", host: raw };\n    if (raw === "")',
      ),
    ],
    // A careless resolver reads a name up to the first invalid character.
    lookup: async (name) =>
      (await systemLookup(name.split(/[^\w.-]/)[0] ?? "", { all: true })).map(({ address }) => address),
    capability: "network.allow-host",
    caughtBy: ["network.allow-host/name-behind-a-mark"],
  },
  {
    name: "address not checked again",
    patches: [egress("decide.js", "if (complaint !== undefined)", "if (complaint === 0)")],
    capability: "network.allow-host",
    caughtBy: ["network.allow-host/name-to-loopback"],
  },
  {
    name: "name resolved again when it is dialled",
    patches: [
      egress(
        "proxy/gate.js",
        "return { decision, addresses };",
        'return { decision, addresses: target.kind === "address" ? addresses : await this.#resolve(target.host) };',
      ),
    ],
    capability: "network.allow-host",
    caughtBy: ["network.allow-host/changing-address"],
  },
  {
    name: "the host's network kept",
    patches: [
      noEvidence,
      plugin("confined/arguments.js", 'jail.network === "own" ? ["--unshare-net"] : []', "[]"),
    ],
    capability: "network.deny",
    caughtBy: [
      "network.deny/tcp",
      "network.deny/udp",
      "network.deny/unix-abstract",
      "network.deny/detached-child",
    ],
  },
  {
    name: "the host's shared memory kept",
    patches: [noEvidence, plugin("confined/arguments.js", '"--unshare-ipc", ', "")],
    capability: "process.contained",
    caughtBy: ["process.contained/shared-segment", "process.contained/message-queue"],
  },
  {
    name: "groups not joined, and not looked at",
    needsRoot: true,
    patches: [
      plugin("confined/jail.js", "echo 0 >&", ": >&"),
      plugin("confined/jail.js", "if (groups !== undefined &&", "if (false &&"),
    ],
    capability: "resources.processes",
    caughtBy: ["resources.processes/fork"],
  },
  {
    name: "disk larger than its limit",
    needsRoot: true,
    patches: [plugin("folders/data-folder.js", "sizeMb * 1024 * 1024", "sizeMb * 4 * 1024 * 1024")],
    capability: "resources.disk",
    caughtBy: ["resources.disk/removed-file", "resources.disk/reserved"],
  },
  {
    name: "server name not compared",
    patches: [
      egress(
        "proxy/tunnel/first-flight.js",
        "return judgeServerName(target, hello.serverName);",
        'return { verdict: "pass" };',
      ),
    ],
    capability: "network.allow-host",
    caughtBy: ["network.allow-host/server-name"],
  },
  {
    name: "workspace writable although read-only",
    patches: [plugin("confined/arguments.js", 'writable ? "--bind-fd" : "--ro-bind-fd"', '"--bind-fd"')],
    capability: "filesystem.read-only",
    caughtBy: ["filesystem.read-only/write", "filesystem.read-only/create"],
  },
];
