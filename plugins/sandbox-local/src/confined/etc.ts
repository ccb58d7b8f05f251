import { cp, readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { codeOf } from "@ambit/core/plugin";
import { makeReadableFolder, writeReadable } from "../folders/readable.js";
import type { ShownPath } from "./arguments.js";
import { inside } from "./inside.js";

/** What of the host's `/etc` programs need; nothing in it names a user, a key or another host. */
const copied = [
  "ca-certificates.conf",
  "crypto-policies",
  "ld.so.cache",
  "ld.so.conf",
  "ld.so.conf.d",
  "localtime",
  "mime.types",
  "pki/tls/certs",
  "protocols",
  "services",
  "ssl/openssl.cnf",
  "timezone",
];

/** The same, with hundreds of entries: a mount costs each jail 0.2 ms, copies would cost each start of Ambit half a second. */
const mounted = ["alternatives", "fonts", "pki/ca-trust", "ssl/certs"];

/** A folder that stands in for `/etc`, made once for a runner. */
export interface Etc {
  readonly folder: string;
  /** Shown over it in every jail. */
  readonly shown: readonly ShownPath[];
  /** And in jails that share the host's network. */
  readonly shared: readonly ShownPath[];
}

const loopbackHosts = "127.0.0.1 localhost sandbox\n::1 localhost\n";

/** One user, no other host, no name servers; and what is the same on every host of its kind. */
export async function makeEtc(parent: string): Promise<Etc> {
  const folder = join(parent, "etc");
  const id = inside.uid;
  await makeReadableFolder(folder);
  for (const name of copied) await copy(name, folder);
  const files = {
    passwd: `agent:x:${id}:${id}:agent:${inside.agentHome}:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n`,
    group: `agent:x:${id}:\nnogroup:x:65534:\n`,
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
    hostname: "sandbox\n",
    hosts: loopbackHosts,
    "resolv.conf": "",
  };
  for (const [name, content] of Object.entries(files)) await writeReadable(join(folder, name), content);
  const shown: ShownPath[] = [];
  for (const name of mounted) {
    const source = join("/etc", name);
    if (!(await isFolder(source))) continue;
    await makeReadableFolder(join(folder, name));
    shown.push({ source, path: source });
  }
  return {
    folder,
    shown,
    shared: [
      await contentOf(parent, "hosts", loopbackHosts),
      // A link into /run on many hosts, so its content is what is shown.
      await contentOf(parent, "resolv.conf", ""),
    ],
  };
}

async function copy(name: string, folder: string): Promise<void> {
  const target = join(folder, name);
  try {
    // Links stay links: almost all lead to /usr, which is there.
    await makeReadableFolder(dirname(target));
    await cp(join("/etc", name), target, { recursive: true, verbatimSymlinks: true });
  } catch (error) {
    // What the runner may not read, nobody inside may either.
    if (codeOf(error) !== "ENOENT" && codeOf(error) !== "EACCES") throw error;
  }
}

async function contentOf(parent: string, name: string, otherwise: string): Promise<ShownPath> {
  const source = join(parent, `shared-${name}`);
  // Not there: nothing to show of it.
  await writeReadable(source, await readFile(join("/etc", name)).catch(() => otherwise));
  return { source, path: `/etc/${name}` };
}

function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
