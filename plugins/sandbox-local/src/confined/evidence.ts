import { readFileSync, readlinkSync, statSync } from "node:fs";
import { type Evidence, SandboxFailed } from "@ambit/core/plugin";
import { z } from "zod";
import { type Mount, parseMounts } from "../process/host-processes.js";
import { inside, type WorkspaceMount } from "./arguments.js";

/** What bubblewrap writes to `--info-fd`: the sandbox's init as the host numbers it, and its namespaces' inodes. */
export const jailInfoSchema = z.object({
  "child-pid": z.int().positive(),
  "ipc-namespace": z.number().optional(),
  "mnt-namespace": z.number(),
  "net-namespace": z.number().optional(),
  "pid-namespace": z.number().optional(),
  "uts-namespace": z.number().optional(),
});
export type JailInfo = z.infer<typeof jailInfoSchema>;

/** The rows of `/proc/<pid>/status` that identify a process and its privileges. */
export interface ProcessStatus {
  /** Real, effective, saved and file system user, as the host numbers them. */
  readonly uids: readonly number[];
  /** The process's number in each pid namespace, outermost first. */
  readonly numbers: readonly number[];
  readonly parent: number;
  /** Hexadecimal, permitted, effective and bounding together: all zero or not. */
  readonly capabilities: string;
  readonly noNewPrivileges: number;
  readonly seccomp: number;
}

export function parseStatus(text: string): ProcessStatus {
  const row = (name: string) => new RegExp(`^${name}:\\s*(.*)$`, "m").exec(text)?.[1] ?? "";
  const numbers = (name: string) => row(name).split(/\s+/).filter(Boolean).map(Number);
  return {
    uids: numbers("Uid"),
    numbers: numbers("NSpid"),
    parent: Number(row("PPid")),
    capabilities:
      ["CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb"].map(row).find((set) => !/^0+$/.test(set)) ?? "0",
    noNewPrivileges: Number(row("NoNewPrivs")),
    seccomp: Number(row("Seccomp")),
  };
}

/** Synchronous, like every read of `/proc` while a jail waits: it takes a few microseconds and no queue. */
export function statusOf(pid: number): ProcessStatus {
  return parseStatus(readFileSync(`/proc/${pid}/status`, "latin1"));
}

/** The runner's own namespaces by the name bubblewrap uses. */
export type Namespaces = Readonly<Record<"ipc" | "mnt" | "net" | "pid" | "uts", number>>;

export function ownNamespaces(): Namespaces {
  const inode = (name: string) => Number(/\[(\d+)\]/.exec(readlinkSync(`/proc/self/ns/${name}`))?.[1]);
  return { ipc: inode("ipc"), mnt: inode("mnt"), net: inode("net"), pid: inode("pid"), uts: inode("uts") };
}

/** What must be true of a jail's program before its first instruction. */
export interface Expected {
  readonly uid: number;
  /** Namespaces that are shared with the runner. */
  readonly shared: readonly (keyof Namespaces)[];
  /** The mode of its system call filter, in the kernel's numbers. Undefined: any. */
  readonly seccomp: number | undefined;
}

/** A filter of the jail's own holds for it (SECCOMP_MODE_FILTER). */
export const filtered = 2;

/** Whether other processes of the same user are kept out of a process: the kernel then gives these files to root. */
export function isGuarded(pid: number, expected: Expected): boolean {
  return statSync(`/proc/${pid}/mem`).uid !== expected.uid;
}

/**
 * Compares the observed state with the planned one.
 *
 * @param refuse gets every difference, in one error. It may throw it.
 */
export function judge(
  info: JailInfo,
  status: ProcessStatus,
  runner: Namespaces,
  expected: Expected,
  refuse: (difference: SandboxFailed) => void,
): Evidence {
  const namespaces: Record<string, number> = {};
  const wrong: string[] = [];
  for (const name of ["mnt", "pid", "ipc", "uts", "net"] as const) {
    if (expected.shared.includes(name)) continue;
    const inode = info[`${name}-namespace`];
    if (inode === undefined || inode === runner[name]) wrong.push(`its ${name} namespace is the runner's`);
    else namespaces[`${name}Namespace`] = inode;
  }
  if (status.uids.length !== 4 || status.uids.some((uid) => uid !== expected.uid)) {
    wrong.push(`its user is ${status.uids.join("/")} instead of ${expected.uid}`);
  }
  if (expected.uid === 0) wrong.push("its user is root");
  if (status.capabilities !== "0") wrong.push(`it has capabilities (${status.capabilities})`);
  if (status.noNewPrivileges !== 1) wrong.push("it may gain privileges");
  if (expected.seccomp !== undefined && status.seccomp !== expected.seccomp)
    wrong.push(`its seccomp mode is ${status.seccomp}`);
  if (wrong.length > 0)
    refuse(new SandboxFailed(`The jail isn't as planned, so nothing was started in it: ${wrong.join("; ")}`));
  return {
    confinement: "confined",
    uid: expected.uid,
    capabilities: "none",
    noNewPrivileges: true,
    seccomp: status.seccomp,
    ...namespaces,
  };
}

/**
 * The planned mounts of the workspace that a jail doesn't have: not there, of another place, or with another access.
 * They were made by name, so they are compared with what the kernel says. Pure.
 *
 * @param table the `mountinfo` of a process in the jail.
 * @returns their paths, relative to the workspace.
 */
export function misplacedMounts(table: string, planned: readonly WorkspaceMount[]): readonly string[] {
  const byPath = new Map(parseMounts(table).map((mount) => [mount.path, mount]));
  const workspace = byPath.get(inside.workspace);
  return planned
    .filter((mount) => !isInPlace(mount, byPath.get(`${inside.workspace}/${mount.path}`), workspace))
    .map(({ path }) => path);
}

function isInPlace(
  { kind, path }: WorkspaceMount,
  mount: Mount | undefined,
  workspace: Mount | undefined,
): boolean {
  if (mount === undefined || workspace === undefined) return false;
  if (kind === "hide-folder") return mount.isReadOnly && mount.root === "/" && isOther(mount, workspace);
  if (kind === "hide-file") return mount.root.endsWith("/null") && isOther(mount, workspace);
  const root = workspace.root === "/" ? "" : workspace.root;
  return (
    mount.device === workspace.device &&
    mount.root === `${root}/${path}` &&
    mount.isReadOnly === (kind === "read")
  );
}

const isOther = (one: Mount, other: Mount) => one.device !== other.device;
