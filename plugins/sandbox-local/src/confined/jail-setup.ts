import { openSync } from "node:fs";
import { readFile, realpath } from "node:fs/promises";
import { basename, join } from "node:path";
import { isSeccompArchitecture, type SeccompArchitecture } from "@ambit/attacks/system-calls";
import { compileSeccompFilter } from "@ambit/backend-kit/system-call-filter";
import { type Evidence, SandboxFailed } from "@ambit/core/plugin";
import { readAuthorities, systemTrust, type TrustFiles } from "@ambit/egress/credentials";
import { nodePreload } from "@ambit/egress/proxy";
import type { LocalConfig } from "../config.js";
import { writeReadable } from "../folders/data-folder.js";
import { type Namespaces, ownNamespaces } from "./evidence.js";
import { coveredOfProc, type Etc, makeEtc, makeTrustStore, systemEntries } from "./files/system.js";
import type { ShownPath, SystemEntry } from "./launch/arguments.js";
import type { Relay } from "./launch/gate.js";
import { inside } from "./launch/inside.js";
import { findPrograms, inspectBubblewrap, makeFirstProgram, type Programs } from "./launch/programs.js";

/** What all jails of one runner share. */
export interface JailSetup {
  readonly programs: Programs;
  /** What it is, and which known hole it has. */
  readonly bubblewrap: Evidence;
  readonly system: readonly SystemEntry[];
  readonly coveredProc: readonly string[];
  readonly etc: Etc;
  /** The authorities of the host and the configuration, at their paths inside. Undefined: there are none. */
  readonly trust: TrustFiles | undefined;
  /** Mounts for `trust`; empty where the host's own are enough. */
  readonly trustStore: readonly ShownPath[];
  readonly seccompFile: string;
  /** The shell of every jail's first process. */
  readonly shell: string;
  /** Programs that are shown inside. */
  readonly nodeProxy: string;
  readonly relays: Readonly<Record<Relay["kind"], string>>;
  readonly namespaces: Namespaces;
  /** An open descriptor of `/dev/null`. */
  readonly devNull: number;
}

/**
 * Whether this kind of host can confine at all, checked before anything else.
 *
 * @throws SandboxFailed naming a kind of host that can.
 */
export function checkHost(
  platform: string = process.platform,
  architecture: string = process.arch,
): SeccompArchitecture {
  if (platform !== "linux") {
    throw new SandboxFailed(
      `This host (${platform}) has no namespaces: run Ambit on Linux, in a container or a virtual machine`,
    );
  }
  if (!isSeccompArchitecture(architecture)) {
    throw new SandboxFailed(`No system call filter is known for ${architecture}: run on x64 or arm64`);
  }
  return architecture;
}

/**
 * @param folder the runner's folder; written to once.
 * @param trustedAuthorities the configuration's.
 */
export async function makeJailSetup(
  folder: string,
  trustedAuthorities: LocalConfig["trustedAuthorities"] = [],
): Promise<JailSetup> {
  const architecture = checkHost();
  const [programs, system, coveredProc] = await Promise.all([
    findPrograms(),
    systemEntries(),
    coveredOfProc(),
  ]);
  const added = await readAuthorities(trustedAuthorities, "sandbox-local");
  const seccompFile = join(folder, "seccomp.bpf");
  await writeReadable(seccompFile, compileSeccompFilter(architecture));
  return {
    programs,
    bubblewrap: await inspectBubblewrap(programs.bubblewrap, folder),
    system,
    coveredProc,
    etc: await makeEtc(folder, await realpath(process.execPath)),
    trust: added.length === 0 ? await systemTrust() : inside.trust,
    trustStore: added.length === 0 ? [] : await makeTrustStore(folder, added),
    seccompFile,
    shell: await makeFirstProgram(folder),
    nodeProxy: await copyInside(folder, nodePreload),
    relays: {
      perl: await copyInside(folder, new URL("relay.pl", programsInside)),
      node: await copyInside(folder, new URL("relay.cjs", programsInside)),
    },
    namespaces: ownNamespaces(),
    devNull: openSync("/dev/null", "r+"),
  };
}

const programsInside = new URL("../../inside/", import.meta.url);

async function copyInside(folder: string, program: URL): Promise<string> {
  const copy = join(folder, basename(program.pathname));
  // Ambit's own installation may lie where a session's user can't reach.
  await writeReadable(copy, await readFile(program));
  return copy;
}
