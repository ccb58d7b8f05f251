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
  type NetworkBoundary,
  type SandboxSpec,
} from "@ambit/core/plugin";
import { makeAuthority } from "@ambit/egress/credentials";
import { claims } from "../claims.js";
import type { LocalConfig } from "../config.js";
import { nodeInstallation } from "../confined/files/required-paths.js";
import { inside } from "../confined/launch/inside.js";
import type { ConfinedSandbox } from "../confined/sandbox.js";
import type { SessionOverrides } from "../confined/session.js";
import { jailEnvironment } from "../confined/spawn.js";
import { cpuTrial } from "./cpu.js";
import { fixFor } from "./fixes.js";
import { otherUsers } from "./other-users.js";
import { processTrials } from "./processes.js";
import { systemCalls } from "./system-calls/trial.js";
import { type LocalTrial, nodeInside } from "./trial.js";
import { viewTrial } from "./view.js";
import { linkTrial, rulesTrial } from "./workspace-rules.js";

export type OpenForProbe = (spec: SandboxSpec, options?: SessionOverrides) => Promise<ConfinedSandbox>;

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
