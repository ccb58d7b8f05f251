import { execFile } from "node:child_process";
import { chmod, mkdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { sandboxImageName } from "@ambit/sandbox-image";
import {
  cgroupNames,
  createCgroups,
  createOwnedFolder,
  imageArchive,
  isLeft,
  leftNames,
  removeCgroups,
} from "@ambit/test-machine";
import { ClusterApi } from "../api.js";
import { copyPrograms } from "../image.js";
import type { OwnClusterPlace } from "../interface.js";
import { OwnCluster } from "../own-cluster.js";
import { programsFolder } from "../programs.js";
import { apiService, linkOf } from "./addresses.js";
import { createCertificates, kubeconfig, type Subject } from "./certificates.js";
import { containerd, kubelet, pauseImage, podNetwork } from "./configuration.js";
import { createNamespaces } from "./namespaces.js";
import { logOf } from "./processes.js";

const execute = promisify(execFile);
const prefix = "ambit-cluster";

/** Milliseconds. It takes five seconds on an idle machine. */
const startTimeoutMs = 180_000;

/** inotify instances: every pod takes some of the kubelet's and containerd's, and the kernel's default is 128 per user. */
const minInotifyInstances = 1024;

export interface StartedCluster {
  readonly place: OwnClusterPlace;
  /** Settles when pods can be started. @throws Error with the end of a program's log. */
  readonly ready: Promise<void>;
  /** Ends everything, and removes what it left. */
  close(): Promise<void>;
}

/** Removes what killed owners left: folders and cgroups. Their processes, links, mounts and namespaces ended with them. */
export async function removeLeftovers(): Promise<void> {
  const groups = (await cgroupNames()).filter((name) => isLeft(prefix, name));
  for (const name of new Set([...(await leftNames(prefix)), ...groups])) {
    await removeCgroups(name);
    await rm(join(tmpdir(), name), { recursive: true, force: true });
  }
}

export interface StartOptions {
  /** Whether it gets the default sandbox image. Default true. */
  readonly sandboxImage?: boolean;
}

/** Starts a cluster, which ends with this process even if that is killed. Ask `whyNotStarted` first. */
export async function startCluster({ sandboxImage = true }: StartOptions = {}): Promise<StartedCluster> {
  await removeLeftovers();
  const programs = await programsFolder();
  const { folder, name } = await createOwnedFolder(prefix);
  const undo: (() => Promise<void>)[] = [() => rm(folder, { recursive: true, force: true, maxRetries: 5 })];
  const close = async () => {
    for (const one of undo.splice(0).reverse()) await one();
  };
  try {
    // Files of a pod belong to users of its own, who must reach them.
    await chmod(folder, 0o755);
    const link = linkOf(process.pid);
    await raiseInotifyInstances();
    undo.push(() => removeCgroups(name));
    await createCgroups(name);
    const { pid, end } = await createNamespaces(link);
    undo.push(end);
    const own = { address: link.node, hostAddress: link.host, neighbourAddress: link.neighbour };
    const place = { pid, folder, programs, name, ...own };
    const starting = new AbortController();
    const ready = start(new OwnCluster(place), sandboxImage, starting.signal);
    // It is reported by `ready`, whether or not someone waits for that.
    ready.catch(() => undefined);
    undo.push(async () => {
      starting.abort();
      await ready.catch(() => undefined);
    });
    return { place, ready, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function start(cluster: OwnCluster, sandboxImage: boolean, signal: AbortSignal): Promise<void> {
  const { folder, address } = cluster.place;
  const keys = join(folder, "keys");
  for (const name of ["keys", "log", "run", "cni"]) await mkdir(join(folder, name), { mode: 0o700 });
  await writeFile(join(folder, "cni", "pods.conflist"), podNetwork(cluster.place));
  await writeFile(join(folder, "containerd.toml"), containerd(cluster.place));
  await writeFile(join(folder, "kubelet.json"), kubelet(cluster.place));
  await writeFile(join(folder, "resolv.conf"), "nameserver 127.0.0.1\n");
  for (const name of ["etcd", "containerd", "world"] as const) cluster.start(name);
  await createCertificates(keys, address, apiService);
  const subjects: Subject[] = ["admin", "controller-manager", "scheduler", "node", "policy-controller"];
  for (const subject of subjects) {
    const text = await kubeconfig(keys, subject, `https://${address}:6443`);
    await writeFile(join(folder, `${subject}.conf`), text, { mode: 0o600 });
  }
  cluster.start("kube-apiserver");
  const pause = importPause(cluster, signal);
  pause.catch(() => undefined);
  const api = new ClusterApi(`https://${address}:6443`, keys);
  try {
    await until("kube-apiserver", cluster, signal, async () => {
      await api.request("GET", "/readyz");
      return true;
    });
    for (const name of ["kube-controller-manager", "kube-scheduler", "kubelet", "policy-controller"] as const)
      cluster.start(name);
    await until("kubelet", cluster, signal, async () =>
      isReady(await api.request("GET", "/api/v1/nodes/n1")),
    );
    await pause;
    if (sandboxImage)
      await cluster.importImage({
        name: sandboxImageName(),
        root: { archive: await imageArchive() },
        command: ["sleep", "infinity"],
      });
    await until("kube-controller-manager", cluster, signal, async () => {
      await api.request("GET", "/api/v1/namespaces/default/serviceaccounts/default");
      return true;
    });
  } finally {
    api.close();
  }
}

/** The first process of each pod, which holds its namespaces. */
async function importPause(cluster: OwnCluster, signal: AbortSignal): Promise<void> {
  const root = join(cluster.place.folder, "pause");
  await copyPrograms(["/bin/sleep"], root);
  await until("containerd", cluster, signal, async () => {
    await cluster.containerImages();
    return true;
  });
  await cluster.importImage({
    name: pauseImage,
    root: { folder: root },
    command: ["/bin/sleep", "infinity"],
  });
}

type Program = Parameters<typeof logOf>[1];

async function until(
  program: Program,
  { place }: OwnCluster,
  signal: AbortSignal,
  check: () => Promise<boolean>,
): Promise<void> {
  let failure: unknown;
  for (const deadline = Date.now() + startTimeoutMs; Date.now() < deadline; await sleep(50)) {
    signal.throwIfAborted();
    try {
      if (await check()) return;
    } catch (error) {
      failure = error;
    }
  }
  const said = failure instanceof Error ? failure.message : "";
  throw new Error(
    `${program} doesn't get ready within ${startTimeoutMs / 1000} s: ${said}\n${await logOf(place.folder, program)}`,
  );
}

function isReady({ status }: Readonly<Record<string, unknown>>): boolean {
  const text = JSON.stringify(status);
  return (
    /"type":"Ready"/.test(text) &&
    /"status":"True"[^{}]*"type":"Ready"|"type":"Ready"[^{}]*"status":"True"/.test(text)
  );
}

async function raiseInotifyInstances(): Promise<void> {
  const setting = "fs.inotify.max_user_instances";
  const { stdout } = await execute("sysctl", ["-n", setting]);
  if (Number(stdout) < minInotifyInstances)
    await execute("sysctl", ["-qw", `${setting}=${minInotifyInstances}`]);
}
