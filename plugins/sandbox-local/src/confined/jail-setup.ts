/** What a runner makes once for all of its jails: the programs that confine, and what of this host they show. */

import { execFile } from "node:child_process";
import { constants, openSync } from "node:fs";
import {
  access,
  chmod,
  copyFile,
  cp,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  realpath,
  rm,
  stat,
  symlink,
} from "node:fs/promises";
import { basename, delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { isSeccompArchitecture, type SeccompArchitecture } from "@ambit/attacks/system-calls";
import { compileSeccompFilter } from "@ambit/backend-kit/system-call-filter";
import { codeOf, type Evidence, type ResourceLimits, SandboxFailed } from "@ambit/core/plugin";
import {
  hashedName,
  readAuthorities,
  systemBundle,
  systemTrust,
  type TrustFiles,
} from "@ambit/egress/credentials";
import { nodePreload, tunnelProgram } from "@ambit/egress/proxy";
import { type SessionGroups, settingsFor } from "../cgroup/session-groups.js";
import type { LocalConfig } from "../config.js";
import { makeReadableFolder, writeReadable } from "../folders/data-folder.js";
import { inside, type ShownPath, type SystemEntry } from "./arguments.js";
import { type Namespaces, ownNamespaces } from "./evidence.js";
import { isPassable } from "./files/required-paths.js";

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

const systemFolders = [
  "/usr",
  "/bin",
  "/sbin",
  "/lib",
  "/lib32",
  "/lib64",
  "/libx32",
  // The number and kind of processors, which `/proc/cpuinfo` shows too.
  "/sys/devices/system/cpu",
  "/sys/devices/system/node",
];

/**
 * World-readable files that describe the host; the rest of `/proc` is readable by root only, or belongs to the jail's
 * namespaces.
 */
export const revealingProcEntries: readonly string[] = ["/proc/key-users", "/proc/keys", "/proc/sched_debug"];

/** The parts of this host that every jail shows unchanged. */
export async function systemEntries(): Promise<readonly SystemEntry[]> {
  const entries = await Promise.all(systemFolders.map(entryAt));
  return entries.filter((entry) => entry !== undefined);
}

export async function coveredOfProc(): Promise<readonly string[]> {
  const isThere = (path: string) =>
    access(path).then(
      () => true,
      () => false,
    );
  const isThereByEntry = await Promise.all(revealingProcEntries.map(isThere));
  return revealingProcEntries.filter((_path, index) => isThereByEntry[index]);
}

async function entryAt(path: string): Promise<SystemEntry | undefined> {
  try {
    const stats = await lstat(path);
    if (stats.isSymbolicLink()) return { kind: "link", path, target: await readlink(path) };
    return stats.isDirectory() ? { kind: "folder", path } : undefined;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

/**
 * The parts of the host's `/etc` that programs need: package settings that `/usr` links to, or that identify the
 * system. None of them names a user, a key or another host.
 */
const copied: readonly RegExp[] = [
  /^(alpine-release|debian_version|lsb-release|os-release|redhat-release)$/,
  /^(ca-certificates\.conf|crypto-policies|pki\/java|pki\/tls\/certs|ssl\/openssl\.cnf)$/,
  /^(gai\.conf|mime\.types|networks|protocols|rpc|services|shells)$/,
  /^(groff|inputrc|manpath\.config|ld\.so\.cache|ld\.so\.conf|ld\.so\.conf\.d|locale\.alias|localtime|magic|timezone)$/,
  /^(ImageMagick-\d+|maven|perl|python\d[\d.]*|terminfo|vim)$/,
];

/** May hold the host's own passwords, usually for mirrors. */
const secret: readonly string[] = ["/etc/maven/settings.xml"];

/**
 * The same, with hundreds of entries: a mount costs each jail 0.2 ms, copying them would cost each start of Ambit half
 * a second.
 */
const mounted: readonly RegExp[] = [
  /^(alternatives|fonts|pki\/ca-trust|ssl\/certs)$/,
  /^(java|java-\d+-openjdk)$/,
];

/** Folders of which only some entries are shown. */
const listedFolders: readonly string[] = ["", "pki", "pki/tls", "ssl"];

/** Missing on the host; programs only need the file to exist. */
const machineId = "abababababababababababababababab";

/** A folder that replaces `/etc` inside, made once per runner. */
export interface Etc {
  readonly folder: string;
  /** Mounted over it in every jail. */
  readonly shown: readonly ShownPath[];
  /** Also in the agent's jails, whose home is different. */
  readonly agent: readonly ShownPath[];
  /** Also in jails that share the host's network. */
  readonly shared: readonly ShownPath[];
}

const loopbackHosts = `127.0.0.1 localhost ${inside.hostName}\n::1 localhost\n`;

/** `root` owns the system's folders: archivers look its name up, though no process inside has its rights. */
function passwd(home: string): string {
  const { user, uid } = inside;
  return `root:x:0:0:root:/:/usr/sbin/nologin\n${user}:x:${uid}:${uid}:${user}:${home}:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n`;
}

const connectProgram = "/etc/ssh/ambit-connect.cjs";

/** OpenSSH knows no proxy by itself. A user's own settings come first. */
function sshConfig(node: string): string {
  const program = node.replaceAll("%", "%%");
  return `Match host !localhost,!127.*,!::1,!${inside.hostName},* exec "test -S ${inside.channel}"
  ProxyCommand env -u NODE_OPTIONS "${program}" ${connectProgram} %h %p
`;
}

/**
 * One user, no other host, no name servers, and what is the same on every host of its kind.
 *
 * @param node the path of Node.js inside.
 */
export async function makeEtc(parent: string, node: string): Promise<Etc> {
  const folder = join(parent, "etc");
  await makeReadableFolder(folder);
  const names = await namesIn("/etc");
  for (const name of names.filter(isOneOf(copied))) await copy(name, folder);
  const files = {
    passwd: passwd(inside.toolHome),
    group: `root:x:0:\n${inside.user}:x:${inside.uid}:\nnogroup:x:65534:\n`,
    "machine-id": `${machineId}\n`,
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
    hostname: `${inside.hostName}\n`,
    hosts: loopbackHosts,
    "resolv.conf": "",
  };
  await makeReadableFolder(join(folder, "ssh"));
  await writeReadable(join(folder, "ssh", "ssh_config"), sshConfig(node));
  await writeReadable(join(parent, connectProgram), await readFile(tunnelProgram));
  for (const [name, content] of Object.entries(files)) await writeReadable(join(folder, name), content);
  const shown: ShownPath[] = [];
  for (const name of names.filter(isOneOf(mounted))) {
    const source = join("/etc", name);
    if (!(await isFolder(source))) continue;
    await makeReadableFolder(join(folder, name));
    shown.push({ source, path: source });
  }
  const agentPasswd = join(parent, "agent-passwd");
  await writeReadable(agentPasswd, passwd(inside.agentHome));
  return {
    folder,
    shown,
    agent: [{ source: agentPasswd, path: "/etc/passwd" }],
    shared: [
      await contentOf(parent, "hosts", loopbackHosts),
      // A link into /run on many hosts, so its content is copied.
      await contentOf(parent, "resolv.conf", ""),
    ],
  };
}

async function copy(name: string, folder: string): Promise<void> {
  const target = join(folder, name);
  try {
    // Links stay links: almost all lead to /usr, which is there.
    await makeReadableFolder(dirname(target));
    const filter = (source: string) => !secret.includes(source);
    await cp(join("/etc", name), target, { recursive: true, verbatimSymlinks: true, filter });
  } catch (error) {
    // What the runner can't read is unreadable inside too.
    if (codeOf(error) !== "ENOENT" && codeOf(error) !== "EACCES") throw error;
  }
}

async function contentOf(parent: string, name: string, otherwise: string): Promise<ShownPath> {
  const source = join(parent, `shared-${name}`);
  // It doesn't exist, so there is nothing to show.
  await writeReadable(source, await readFile(join("/etc", name)).catch(() => otherwise));
  return { source, path: `/etc/${name}` };
}

const isOneOf = (patterns: readonly RegExp[]) => (name: string) =>
  patterns.some((pattern) => pattern.test(name));

/** Entries of the listed folders, relative to `/etc`. */
async function namesIn(root: string): Promise<readonly string[]> {
  const lists = listedFolders.map(async (folder) => {
    const names = await readdir(join(root, folder)).catch((error: unknown) => {
      if (["ENOENT", "EACCES", "ENOTDIR"].includes(codeOf(error) ?? "")) return [];
      throw error;
    });
    return names.map((name) => (folder === "" ? name : `${folder}/${name}`));
  });
  return (await Promise.all(lists)).flat();
}

function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
}

const store = "/etc/ssl/certs";
const bundleName = "ca-certificates.crt";
const authorityName = "ambit-session.pem";

/**
 * What jails trust in addition to the host's authorities: a file with all for programs that read it from variables and, if
 * the host has Debian's store, a copy of it with the added ones for all others.
 *
 * @param folder of the session or the runner; written to once.
 * @param added authorities in PEM, the session's own first.
 * @returns the mounts of every jail, in this order.
 */
export async function makeTrustStore(
  folder: string,
  added: readonly string[],
): Promise<readonly ShownPath[]> {
  const authority = `${added.join("\n").trim()}\n`;
  // Java's keytool reads only the first.
  const bundle = `${authority}${await systemBundle()}`;
  const trust = join(folder, "trust");
  await makeReadableFolder(trust);
  const bundleFile = join(trust, "bundle.pem");
  await writeReadable(bundleFile, bundle);
  const shown = [{ source: bundleFile, path: inside.trust.bundle }];
  if (!(await isFolder(store))) return shown;
  const copy = join(trust, "certs");
  // Links stay links: almost all lead to /usr, which is there.
  await cp(store, copy, { recursive: true, verbatimSymlinks: true });
  await makeReadableFolder(copy);
  const target = join(copy, bundleName);
  // The host's may be a link to somewhere that must not be written.
  await rm(target, { force: true });
  await writeReadable(target, bundle);
  await writeReadable(join(copy, authorityName), authority);
  await symlink(authorityName, join(copy, hashedName()));
  return [{ source: copy, path: store }, ...shown];
}

/** Where programs look for their limits. */
const groupsInside = "/sys/fs/cgroup";

/**
 * The session's groups as its programs find them, read-only, in the order of their mounts: under version 2 the group itself.
 * Under version 1 a folder with each controller's group, and with the files that version 2 would have, since many programs
 * know only those.
 *
 * @param folder the session's folder.
 * @param isOtherUser whether its jails run as another user than the runner.
 */
export async function limitFiles(
  { limited }: Pick<SessionGroups, "limited">,
  limits: ResourceLimits,
  folder: string,
  isOtherUser: boolean,
): Promise<readonly ShownPath[]> {
  // The runner's umask may have closed them.
  for (const { path } of limited.values()) await chmod(path, 0o755);
  const groups = [...limited.values()];
  const reachable = await Promise.all(groups.map(({ path }) => !isOtherUser || isPassable(path)));
  const [unified] = groups;
  if (
    unified !== undefined &&
    reachable.every(Boolean) &&
    groups.every(({ path, version }) => version === 2 && path === unified.path)
  )
    return [{ source: unified.path, path: groupsInside }];
  const view = join(folder, "limits");
  await makeReadableFolder(view);
  const settings = Object.values(settingsFor(limits, 2)).flat();
  for (const { file, value, optional } of settings)
    if (!optional) await writeReadable(join(view, file), `${value}\n`);
  const mounts: ShownPath[] = [];
  for (const [index, { path, version, root }] of groups.entries()) {
    if (version === 2 || reachable[index] !== true) continue;
    // Such as `cpu,cpuacct`, with a link for each of its controllers.
    const hierarchy = basename(root);
    await makeReadableFolder(join(view, hierarchy));
    const names = hierarchy.split(",").filter((name) => name !== hierarchy);
    for (const name of names) await symlink(hierarchy, join(view, name));
    mounts.push({ source: path, path: join(groupsInside, hierarchy) });
  }
  return [{ source: view, path: groupsInside }, ...mounts];
}
