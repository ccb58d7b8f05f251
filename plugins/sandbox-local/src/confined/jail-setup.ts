import { execFile } from "node:child_process";
import { constants, openSync } from "node:fs";
import { access, chmod, copyFile, mkdir, readFile, realpath, rm, stat, symlink } from "node:fs/promises";
import { basename, delimiter, join } from "node:path";
import { promisify } from "node:util";
import { isSeccompArchitecture, type SeccompArchitecture } from "@ambit/attacks/system-calls";
import { compileSeccompFilter } from "@ambit/backend-kit/system-call-filter";
import { codeOf, type Evidence, SandboxFailed } from "@ambit/core/plugin";
import { readAuthorities, systemTrust, type TrustFiles } from "@ambit/egress/credentials";
import { nodePreload } from "@ambit/egress/proxy";
import type { LocalConfig } from "../config.js";
import { writeReadable } from "../folders/data-folder.js";
import { type Namespaces, ownNamespaces } from "./evidence.js";
import { coveredOfProc, type Etc, makeEtc, makeTrustStore, systemEntries } from "./files/system.js";
import type { ShownPath, SystemEntry } from "./launch/arguments.js";
import { inside } from "./launch/inside.js";

const usual = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/** The absolute path of the host's bubblewrap. */
export async function findBubblewrap(): Promise<string> {
  const bubblewrap = await findProgram("bwrap");
  if (bubblewrap === undefined) throw new SandboxFailed("bubblewrap isn't installed");
  return bubblewrap;
}

/** The host programs that confine, as files: another version, or another file in its place, has another text. */
export async function programIdentities(): Promise<readonly string[]> {
  return await Promise.all([
    identityOf(await findProgram("bwrap"), "bwrap"),
    identityOf(process.execPath, "node"),
  ]);
}

async function identityOf(path: string | undefined, name: string): Promise<string> {
  if (path === undefined) return `${name}: none`;
  const { ino, size, mtimeMs, ctimeMs } = await stat(path);
  return [name, await realpath(path), ino, size, mtimeMs, ctimeMs].join(" ");
}

async function findProgram(name: string): Promise<string | undefined> {
  const folders = [
    ...usual,
    ...(process.env.PATH ?? "").split(delimiter).filter((path) => path.startsWith("/")),
  ];
  for (const folder of folders) {
    const path = join(folder, name);
    const runs = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (runs) return path;
  }
  return undefined;
}

const execute = promisify(execFile);
const inspection = { cwd: "/", env: { PATH: "/usr/bin:/bin" }, timeout: 10_000 } as const;

/**
 * This host's bubblewrap, for each sandbox's evidence: its version and, as `bubblewrapWarning`, a known hole that it has
 * here, why jails don't depend on it, and its fix.
 *
 * @param folder only the runner writes to it.
 */
export async function inspectBubblewrap(program: string, folder: string): Promise<Evidence> {
  const { stdout } = await execute(program, ["--version"], inspection);
  const bubblewrap = /\d[\w.+~-]*/.exec(stdout)?.[0] ?? "of an unknown version";
  if (!(await followsLinksOfTargets(program, join(folder, "bubblewrap")))) return { bubblewrap };
  return { bubblewrap, bubblewrapWarning: warningOf(bubblewrap) };
}

export const warningOf = (version: string) =>
  `bubblewrap ${version} follows links out of a sandbox while it sets it up (CVE-2026-87766), which Ambit's jails avoid: install bubblewrap 0.12 or newer, or a package with the fix`;

/**
 * Tries the hole, since a package may have the fix and an old version: a mount on a path that leads through a link to
 * `/oldroot`. The link's target is an empty folder of our own.
 */
async function followsLinksOfTargets(program: string, folder: string): Promise<boolean> {
  const [shown, decoy] = [join(folder, "shown"), join(folder, "decoy")];
  try {
    await mkdir(shown, { recursive: true });
    await mkdir(decoy);
    await symlink(`/oldroot${decoy}`, join(shown, "link"));
    const mounts = ["--bind", shown, "/shown", "--ro-bind", "/dev/null", "/shown/link/made"];
    // There is no such program in it: it fails in any case, and what it left behind tells.
    await execute(program, ["--unshare-user", ...mounts, "--", "/none"], inspection).catch(() => undefined);
    return await access(join(decoy, "made")).then(
      () => true,
      () => false,
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The host's shell; in a jail it runs as `inside.shell`. */
export const hostShell = "/bin/sh";

/**
 * Copies the host's shell so that every user may execute the copy and none may read it. As long as it runs, the kernel
 * then keeps every process of the same user out of it (`/proc/<pid>/mem`, ptrace, pidfd_getfd): execve(2) makes a
 * program that its user can't read not dumpable. A jail's first process is such a copy; its payload has the same user,
 * and could otherwise take control of it.
 *
 * @throws SandboxFailed when programs can't be executed from this folder.
 */
async function makeFirstProgram(folder: string): Promise<string> {
  const copy = join(folder, "sh");
  await copyFile(await realpath(hostShell), copy);
  await chmod(copy, 0o111);
  try {
    await promisify(execFile)(copy, ["-c", ":"], { cwd: "/", env: {} });
  } catch (error) {
    if (codeOf(error) !== "EACCES") throw error;
    throw new SandboxFailed(
      "Programs can't be started from sandbox-local's dataFolder: set it to a folder of a file system that is mounted without noexec",
      { cause: error },
    );
  }
  return copy;
}

/** What all jails of one runner share. */
export interface JailSetup {
  /** The absolute path of the host's bubblewrap. */
  readonly bubblewrapProgram: string;
  /** The version of bubblewrap, and the known hole that it has. */
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
  readonly relay: string;
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
  const [bubblewrapProgram, system, coveredProc] = await Promise.all([
    findBubblewrap(),
    systemEntries(),
    coveredOfProc(),
  ]);
  const added = await readAuthorities(trustedAuthorities, "sandbox-local");
  const seccompFile = join(folder, "seccomp.bpf");
  await writeReadable(seccompFile, compileSeccompFilter(architecture));
  return {
    bubblewrapProgram,
    bubblewrap: await inspectBubblewrap(bubblewrapProgram, folder),
    system,
    coveredProc,
    etc: await makeEtc(folder, await realpath(process.execPath)),
    trust: added.length === 0 ? await systemTrust() : inside.trust,
    trustStore: added.length === 0 ? [] : await makeTrustStore(folder, added),
    seccompFile,
    shell: await makeFirstProgram(folder),
    nodeProxy: await copyInside(folder, nodePreload, 0o644),
    relay: await copyInside(folder, new URL(`../../native/relay-${architecture}`, import.meta.url), 0o755),
    namespaces: ownNamespaces(),
    devNull: openSync("/dev/null", "r+"),
  };
}

/** A copy of a program for jails: Ambit's own installation may lie where a session's user can't reach. */
async function copyInside(folder: string, program: URL, mode: number): Promise<string> {
  const copy = join(folder, basename(program.pathname));
  await writeReadable(copy, await readFile(program));
  await chmod(copy, mode);
  return copy;
}
