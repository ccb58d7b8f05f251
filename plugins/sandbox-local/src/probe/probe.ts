import {
  limitTrials,
  probeSandboxes,
  type StandardProbe,
  standardTrials,
} from "@ambit/attacks/standard-probe";
import { isSeccompArchitecture } from "@ambit/attacks/system-calls";
import {
  domainOf,
  type Evidence,
  type Finding,
  messageOf,
  type NetworkBoundary,
  type SandboxSpec,
} from "@ambit/core/plugin";
import { makeAuthority } from "@ambit/egress/credentials";
import { claims } from "../claims.js";
import type { LocalConfig } from "../config.js";
import { inside } from "../confined/arguments.js";
import { nodeInstallation } from "../confined/files/required-paths.js";
import { jailEnvironment } from "../confined/jail.js";
import type { ConfinedSandbox, SessionOverrides } from "../confined/session.js";
import { cpuTrial, otherUsers, processTrials } from "./processes.js";
import { systemCalls } from "./system-calls.js";
import { type LocalTrial, nodeInside } from "./trial.js";
import { viewTrial } from "./view.js";
import { linkTrial, rulesTrial } from "./workspace-rules.js";

type OpenForProbe = (spec: SandboxSpec, options?: SessionOverrides) => Promise<ConfinedSandbox>;

/** What the standard probe shows besides is shown here of every jail that starts, and of each of its mounts. */
const { network, lists, files, processes, named, secrets, inbound } = standardTrials;

/** All trials: the standard ones, and those of what only jails of this host have. @param config and the sandboxes' data folder. */
export const trialsOf = (
  config: Pick<LocalConfig, "scratchMb" | "protectedPaths">,
  dataFolder: string,
): readonly LocalTrial[] => [
  network,
  lists,
  files,
  processes,
  named,
  secrets,
  inbound,
  ...limitTrials,
  ...processTrials,
  viewTrial(config.scratchMb * 1024 * 1024),
  rulesTrial(config, dataFolder),
  linkTrial,
  otherUsers,
  systemCalls,
  cpuTrial,
];

const closed: NetworkBoundary = { mode: "off", rules: [] };

/**
 * What the standard probe must know of jails.
 *
 * @param readOnlyMounts what the deployer shows in every jail, besides the runner's Node.
 */
export async function jailsUnderProbe(readOnlyMounts: readonly string[] = []) {
  return {
    node: nodeInside,
    reachedAt: "127.0.0.1",
    hasShell: true,
    scratch: [inside.toolHome],
    hiddenPaths: ["/etc/shadow", "/root"],
    // Version managers, and a clone's own `.cache`, keep Node below root's home.
    shownPaths: [(await nodeInstallation()).path, ...readOnlyMounts],
    // `PWD` is set by the shell that starts a command.
    variables: [
      ...Object.keys(jailEnvironment({ env: {} }, "own", closed, { authority: "", bundle: "" })),
      "PWD",
    ],
  } as const satisfies Partial<StandardProbe>;
}

/**
 * Runs the trials and returns a finding for every claim.
 *
 * @param readOnlyMounts what the deployer shows in every jail, besides the runner's Node.
 */
export async function probeConfinement(
  open: OpenForProbe,
  signal: AbortSignal,
  trials: readonly LocalTrial[],
  readOnlyMounts: readonly string[] = [],
): Promise<readonly Finding[]> {
  let evidence: Evidence = {};
  // The first one shows that jails come up here; every other one is used at once.
  let isTried = true;
  const findings = await probeSandboxes<ConfinedSandbox>(
    {
      ...(await jailsUnderProbe(readOnlyMounts)),
      ...(isSeccompArchitecture(process.arch) ? { kernel: { machine: process.arch, isGvisor: false } } : {}),
      claims,
      makeAuthority,
      fixFor,
      open: async (spec, _scope, options) => {
        const opening = open(spec, { ...options, isTried });
        isTried = false;
        const sandbox = await opening;
        evidence = { ...sandbox.evidence, ...evidence };
        return sandbox;
      },
    },
    signal,
    trials,
  );
  return findings.map((finding) => withWarning(finding, evidence));
}

/** bubblewrap's known holes concern what is mounted. */
function withWarning(finding: Finding, { bubblewrapWarning: warning }: Evidence): Finding {
  if (typeof warning !== "string" || !finding.proven || domainOf(finding.capability) !== "filesystem") {
    return finding;
  }
  return { ...finding, warning };
}

/** The fix for a jail that can't be opened, by bubblewrap's message. The first match applies. */

const containerFlags =
  "--security-opt seccomp=unconfined --security-opt systempaths=unconfined --security-opt apparmor=unconfined";

const fixes: readonly (readonly [words: RegExp, fix: string])[] = [
  [/bubblewrap isn't installed/, "apt install bubblewrap"],
  [/has no namespaces/, "run Ambit on Linux, or name a sandbox that doesn't need this host"],
  [
    /setting up uid map|RTM_NEWADDR/,
    "allow bwrap user namespaces in AppArmor (kernel.apparmor_restrict_unprivileged_userns): install a profile with `userns` for /usr/bin/bwrap",
  ],
  [/Can't mount proc|mount proc/, "in Docker add --security-opt systempaths=unconfined"],
  [
    /No permissions to create (?:a )?new namespace|Creating new namespace failed|pivot_root|make \/ slave/,
    `in Docker add ${containerFlags}; elsewhere allow user namespaces (kernel.unprivileged_userns_clone=1, user.max_user_namespaces > 0)`,
  ],
  [
    // Root's own program, for a session whose files lie where only root reaches them.
    /unshare: unshare failed/,
    `in Docker add --cap-add SYS_ADMIN ${containerFlags}; elsewhere give root CAP_SYS_ADMIN`,
  ],
  [/userIds.records/, "set sandbox-local's userIds.records to a folder that all runners of this host share"],
  [/Programs can't be started from/, "set sandbox-local's dataFolder to a file system without noexec"],
  [/can be changed by its payload/, "sysctl fs.suid_dumpable=0"],
  [
    /can't be reached by a session's own user|can't be used/,
    "set sandbox-local's dataFolder to a folder that other users can reach",
  ],
  [
    /disk limit can't be set/,
    "run Ambit as root on a host with loop devices and mkfs.ext4 (apt install e2fsprogs); in a container they are rarely allowed: limit what the tools write, or name a sandbox with its own disk",
  ],
  [
    /limit can't be set|has no \w+ cgroups/,
    "run Ambit as root, or with delegated cgroups (systemd: Delegate=yes, DelegateSubgroup=runner)",
  ],
  [/user ids/, "set sandbox-local's userIds to a range that nothing else uses"],
  [
    /`readOnlyMounts`/,
    "name in sandbox-local's readOnlyMounts what is there, and let other users read it (chmod -R o+rX)",
  ],
  [/relay doesn't listen/, "raise the runner's own limits of processes and memory"],
];

export function fixFor(error: unknown): string {
  const reason = messageOf(error);
  const [, option] = /[Uu]nknown option (--[\w-]+)/.exec(reason) ?? [];
  if (option !== undefined) return `install a newer bubblewrap: this one lacks ${option}`;
  const [, closed] = /can't be read by a session's own user: (.+) has the mode/.exec(reason) ?? [];
  if (closed !== undefined) return `chmod -R go+rX ${closed}`;
  const fix = fixes.find(([words]) => words.test(reason));
  return fix?.[1] ?? "mend on this host what the reason names, or name another sandbox";
}
