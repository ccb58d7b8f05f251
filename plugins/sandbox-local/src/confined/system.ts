import { constants } from "node:fs";
import { access, lstat, readFile, readlink, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { codeOf } from "../folders/open-beneath.js";
import { makeReadableFolder, writeReadable } from "../folders/readable.js";
import type { SystemEntry } from "./arguments.js";
import { inside } from "./inside.js";

const systemFolders = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/** What of the host's `/etc` programs need; nothing in it names a user, a key or another host. */
const shownOfEtc = [
  "/etc/alternatives",
  "/etc/ca-certificates",
  "/etc/crypto-policies",
  "/etc/fonts",
  "/etc/ld.so.cache",
  "/etc/ld.so.conf",
  "/etc/ld.so.conf.d",
  "/etc/localtime",
  "/etc/mime.types",
  "/etc/pki/ca-trust",
  "/etc/pki/tls",
  "/etc/ssl/certs",
  "/etc/ssl/openssl.cnf",
  "/etc/timezone",
];

const toldByProc = [
  "/proc/kcore",
  "/proc/key-users",
  "/proc/keys",
  "/proc/kmsg",
  "/proc/sched_debug",
  "/proc/sysrq-trigger",
  "/proc/timer_list",
];

/** The parts of this host that every jail shows. */
export interface HostSystem {
  readonly system: readonly SystemEntry[];
  readonly shownOfEtc: readonly string[];
  readonly coveredProc: readonly string[];
}

export async function lookAtHost(): Promise<HostSystem> {
  const system = await Promise.all(systemFolders.map(entryAt));
  return {
    system: system.filter((entry) => entry !== undefined),
    shownOfEtc: await existing(shownOfEtc),
    coveredProc: await existing(toldByProc),
  };
}

async function entryAt(path: string): Promise<SystemEntry | undefined> {
  try {
    const found = await lstat(path);
    if (found.isSymbolicLink()) return { kind: "link", path, target: await readlink(path) };
    return found.isDirectory() ? { kind: "folder", path } : undefined;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

async function existing(paths: readonly string[]): Promise<readonly string[]> {
  const found = await Promise.all(
    paths.map((path) =>
      access(path, constants.F_OK).then(
        () => true,
        () => false,
      ),
    ),
  );
  return paths.filter((_path, index) => found[index]);
}

/**
 * Writes the folders that stand in for `/etc`: one user, no host, and name servers only for a jail that shares
 * the host's network.
 */
export async function writeSkeletons(folder: string, shown: readonly string[]): Promise<Record<"own" | "shared", string>> {
  const [own, shared] = [join(folder, "etc-own"), join(folder, "etc-shared")];
  const resolver = await readFile("/etc/resolv.conf", "utf8").catch(() => "");
  const hosts = await readFile("/etc/hosts", "utf8").catch(() => loopbackHosts);
  await writeSkeleton(own, { "resolv.conf": "", hosts: loopbackHosts }, shown);
  await writeSkeleton(shared, { "resolv.conf": resolver, hosts }, shown);
  return { own, shared };
}

const loopbackHosts = "127.0.0.1 localhost sandbox\n::1 localhost\n";

async function writeSkeleton(
  folder: string,
  network: Readonly<Record<"resolv.conf" | "hosts", string>>,
  shown: readonly string[],
): Promise<void> {
  const id = inside.uid;
  const files = {
    ...network,
    passwd: `agent:x:${id}:${id}:agent:${inside.agentHome}:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n`,
    group: `agent:x:${id}:\nnogroup:x:65534:\n`,
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
    hostname: "sandbox\n",
  };
  await makeReadableFolder(folder);
  for (const [name, content] of Object.entries(files)) await writeReadable(join(folder, name), content);
  // bubblewrap can't make these itself in a folder that it may not write.
  for (const path of shown) await makePlace(join(folder, path.slice("/etc/".length)), path);
}

async function makePlace(place: string, path: string): Promise<void> {
  const isFolder = (await stat(path)).isDirectory();
  await makeReadableFolder(isFolder ? place : dirname(place));
  if (!isFolder) await writeReadable(place, "");
}
