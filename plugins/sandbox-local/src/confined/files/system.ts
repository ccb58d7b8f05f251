import { access, chmod, cp, lstat, readdir, readFile, readlink, rm, stat, symlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { codeOf, type ResourceLimits } from "@ambit/core/plugin";
import { hashedName, systemBundle } from "@ambit/egress/credentials";
import { tunnelProgram } from "@ambit/egress/proxy";
import { type SessionGroups, settingsFor } from "../../cgroup/session-groups.js";
import { makeReadableFolder, writeReadable } from "../../folders/data-folder.js";
import type { ShownPath, SystemEntry } from "../launch/arguments.js";
import { inside } from "../launch/inside.js";
import { isPassable } from "./required-paths.js";

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
const looked: readonly string[] = ["", "pki", "pki/tls", "ssl"];

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
  const lists = looked.map(async (folder) => {
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
