import { chmod, chown, copyFile, lstat, mkdir, readlink, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gatewayAddress } from "../addresses.js";
import type { SandboxSpec } from "../messages.js";

export const users = {
  root: { uid: 0, home: "/root" },
  daytona: { uid: 1000, home: "/home/daytona" },
} as const;

const passwd = `root:x:0:0:root:/root:/bin/bash
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
daytona:x:1000:1000:daytona:/home/daytona:/bin/bash
`;
const group = "root:x:0:\ndaemon:x:1:\ntty:x:5:\nshadow:x:42:\nnogroup:x:65534:\ndaytona:x:1000:\n";
const shadow = "root:*:20000:0:99999:7:::\ndaytona:*:20000:0:99999:7:::\n";

/** Links that a merged-/usr system has at its root. Where this machine has folders, they are bound instead. */
export const systemLinks = ["bin", "sbin", "lib", "lib64"];

async function systemLink(name: string): Promise<string | undefined> {
  const found = await lstat(`/${name}`).catch(() => undefined);
  return found?.isSymbolicLink() ? await readlink(`/${name}`) : undefined;
}

/** Fills a sandbox's empty root: /etc, homes and scratch. The system itself is bound over it. */
export async function fillRoot(root: string, spec: SandboxSpec): Promise<void> {
  const folders = [
    "etc",
    "root",
    "home/daytona",
    "tmp",
    "var/tmp",
    "run",
    "opt",
    "srv",
    "mnt",
    "usr",
    "proc",
    "dev",
  ];
  for (const folder of folders) await mkdir(`${root}/${folder}`, { recursive: true });
  // bwrap would create the parent folders of a bind for root alone.
  const targets = [daemon.folder, ...Object.values(spec.image.binds).map((target) => dirname(target))];
  for (const target of targets)
    if (!/^\/(usr|s?bin|lib[^/]*)(\/|$)/.test(target)) await mkdir(join(root, target), { recursive: true });
  await chmod(`${root}/root`, spec.image.openHome ? 0o755 : 0o700);
  await chmod(`${root}/tmp`, 0o1777);
  await chmod(`${root}/var/tmp`, 0o1777);
  await chown(`${root}/home/daytona`, users.daytona.uid, users.daytona.uid);

  const files = {
    passwd,
    group,
    hosts: `127.0.0.1 localhost\n127.0.1.1 ${spec.id}\n`,
    hostname: `${spec.id}\n`,
    "resolv.conf": `nameserver ${gatewayAddress(spec.index)}\noptions timeout:2 attempts:1\n`,
    shells: `${spec.image.shells.join("\n")}\n`,
    "nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n",
  };
  for (const [name, text] of Object.entries(files)) await writeFile(`${root}/etc/${name}`, text);
  await writeFile(`${root}/etc/shadow`, shadow, { mode: 0o640 });
  // Speeds up every program's start: without it, the linker searches.
  await copyFile("/etc/ld.so.cache", `${root}/etc/ld.so.cache`).catch(() => {});
  for (const name of systemLinks) {
    const target = await systemLink(name);
    if (target === undefined) continue;
    // What was made from a snapshot of a sandbox has it already.
    await rm(`${root}/${name}`, { force: true });
    await symlink(target, `${root}/${name}`);
  }
}

/** The daemon's path inside, and its source. */
export const daemon = {
  /** This file is bundled into `runner/bundle`, which is as deep. */
  source: fileURLToPath(new URL("../..", import.meta.url)),
  manifest: fileURLToPath(new URL("../../../package.json", import.meta.url)),
  folder: "/opt/daytona",
  main: "/opt/daytona/dist/toolbox/bundle/main.cjs",
};

/** Node for the daemon and for all programs inside: the system's, or this process's, bound. */
export function nodeInside(): { readonly program: string; readonly bind?: readonly [string, string] } {
  const program = process.execPath;
  if (program.startsWith("/usr/")) return { program };
  const prefix = dirname(dirname(program));
  return { program: "/opt/node/bin/node", bind: [prefix, "/opt/node"] };
}
