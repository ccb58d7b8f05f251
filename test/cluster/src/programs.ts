import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const execute = promisify(execFile);
const cache = fileURLToPath(new URL("../../../.cache/cluster", import.meta.url));

/** The folder of the cluster's programs, or of their archive. */
export const programsVariable = "AMBIT_CLUSTER";

/** One program is Kubernetes; the others are links to it. */
const needed = ["etcd", "kubernetes", "containerd", "containerd-shim-runc-v2", "runc", "ctr"];
const archiveName = "programs.tar.xz";

/** Debian's packages of what the cluster runs besides, and a file of each. */
const debian: Readonly<Record<string, readonly string[]>> = {
  "containernetworking-plugins": ["/usr/lib/cni/ptp"],
  iproute2: ["/usr/sbin/ip", "/sbin/ip"],
  iptables: ["/usr/sbin/iptables", "/sbin/iptables"],
  openssl: ["/usr/bin/openssl"],
};

/** Why no cluster can be started here, with the fix; undefined where it can. */
export function whyNotStarted(): string | undefined {
  const folder = process.env[programsVariable];
  if (folder === undefined)
    return `no cluster: set ${programsVariable} to a folder of its programs, or AMBIT_TEST_KUBECONFIG to any cluster's kubeconfig (test/cluster/README.md)`;
  if (process.platform !== "linux") return "a cluster of its own needs Linux";
  if (process.getuid?.() !== 0) return "a cluster of its own needs root";
  const missing = Object.keys(debian).filter((name) => !debian[name]?.some((path) => existsSync(path)));
  if (missing.length > 0) return `a cluster of its own needs packages: apt-get install ${missing.join(" ")}`;
  if (hasPrograms(folder) || existsSync(join(folder, archiveName))) return undefined;
  return `${programsVariable}: ${folder} has neither ${archiveName} nor ${needed.join(", ")}`;
}

/** The folder of the unpacked programs. An archive is unpacked once into `.cache`, and again when it changes. */
export async function programsFolder(): Promise<string> {
  const folder = process.env[programsVariable] ?? "";
  if (hasPrograms(folder)) return folder;
  const archive = join(folder, archiveName);
  const { size, mtimeMs } = await stat(archive);
  const name = `${size}-${Math.trunc(mtimeMs)}`;
  const target = join(cache, name);
  if (hasPrograms(target)) return target;
  await mkdir(cache, { recursive: true });
  const unpacked = await mkdtemp(join(cache, "unpacking-"));
  try {
    await execute("tar", ["-xJf", archive, "-C", unpacked]);
    await rm(target, { recursive: true, force: true });
    // Two test runs may unpack at a time: the later one finds the folder, and uses it.
    await rename(unpacked, target).catch((error) => {
      if (!hasPrograms(target)) throw error;
    });
  } finally {
    await rm(unpacked, { recursive: true, force: true });
  }
  for (const other of await readdir(cache))
    if (/^\d+-\d+$/.test(other) && other !== name)
      await rm(join(cache, other), { recursive: true, force: true });
  return target;
}

function hasPrograms(folder: string): boolean {
  return needed.every((name) => existsSync(join(folder, name)));
}
