import { readdir, readFile, readlink } from "node:fs/promises";
import { codeOf, type LocalConnection } from "@ambit/core/plugin";
import { markArgument } from "./marked-processes.js";
import { ownSessions } from "./own-sessions.js";

/** The kernel's data on a socket: its owner and its inode. */
export interface SocketRow {
  readonly uid: number;
  /** 0 if no process holds it any more. */
  readonly inode: number;
}

/** The row of the other end of a connection in `/proc/net/tcp` or `tcp6`. Pure. */
export function socketOf(table: string, { localPort, remotePort }: LocalConnection): SocketRow | undefined {
  const hexadecimal = (port: number) => port.toString(16).toUpperCase().padStart(4, "0");
  const [own, others] = [`:${hexadecimal(remotePort)}`, `:${hexadecimal(localPort)}`];
  for (const line of table.split("\n")) {
    const [, local = "", remote = "", , , , , uid, , inode] = line.trim().split(/\s+/);
    if (local.endsWith(own) && remote.endsWith(others)) return { uid: Number(uid), inode: Number(inode) };
  }
  return undefined;
}

interface HostProcess {
  readonly pid: number;
  readonly parent: number;
  readonly session: number;
  readonly isMarked: boolean;
}

/**
 * Marked processes, their descendants, and the processes that share a session with one of them. Pure.
 *
 * @param ownSession the runner's session: other processes in it belong to no run. @param known sessions that belong to
 * runs in any case.
 */
export function processesOfRuns(
  all: readonly HostProcess[],
  ownSession: number,
  known: ReadonlySet<number> = new Set(),
): ReadonlySet<number> {
  const marked = all.filter((one) => one.isMarked);
  const marks = marked.map(({ session }) => session).filter((session) => session !== ownSession);
  const sessions = new Set([...marks, ...known]);
  const found = new Set(all.filter((one) => one.isMarked || sessions.has(one.session)).map(({ pid }) => pid));
  for (let before = 0; before !== found.size; ) {
    before = found.size;
    for (const { pid, parent } of all) if (found.has(parent)) found.add(pid);
  }
  return found;
}

/** Whether a process of some run made a connection to this host. One scan of all processes serves many questions. */
export class ConnectionOwners {
  readonly #isSessionUser: (uid: number) => boolean;
  #next: Promise<ReadonlySet<number>> | undefined;
  #last: Promise<unknown> = Promise.resolve();

  /** @param isSessionUser whether a user id is one that only sessions have. */
  constructor(isSessionUser: (uid: number) => boolean) {
    this.#isSessionUser = isSessionUser;
  }

  /** Also true if that can't be determined: a caller that is gone already reads no response. */
  async isOfRun(connection: LocalConnection): Promise<boolean> {
    const tables = await Promise.all(["/proc/net/tcp", "/proc/net/tcp6"].map(textOf));
    const row = tables.map((table) => socketOf(table, connection)).find((one) => one !== undefined);
    if (row !== undefined && this.#isSessionUser(row.uid)) return true;
    const ofRuns = await this.#lookAtAll();
    if (ofRuns.size === 0) return false;
    if (row === undefined || row.inode === 0) return true;
    for (const pid of ofRuns) if (await holds(pid, row)) return true;
    return false;
  }

  /** Shares a scan that hasn't begun yet; one that is running may have missed the caller. */
  #lookAtAll(): Promise<ReadonlySet<number>> {
    this.#next ??= this.#last.then(async () => {
      this.#next = undefined;
      return processesOfRuns(await everyProcess(), await sessionOf("self"), ownSessions);
    });
    this.#last = this.#next.catch(() => undefined);
    return this.#next;
  }
}

async function everyProcess(): Promise<readonly HostProcess[]> {
  const found: HostProcess[] = [];
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue;
    const [stat, ...texts] = await Promise.all(
      ["stat", "environ", "cmdline"].map((file) => textOf(`/proc/${name}/${file}`)),
    );
    const [, parent, , session] = fieldsOf(stat ?? "");
    const marker = markArgument("");
    const isMarked = texts.some((text) => text.startsWith(marker) || text.includes(`\0${marker}`));
    found.push({ pid: Number(name), parent: Number(parent), session: Number(session), isMarked });
  }
  return found;
}

async function sessionOf(pid: string): Promise<number> {
  return Number(fieldsOf(await textOf(`/proc/${pid}/stat`))[3]);
}

/** State, parent, process group, session: the fields after the program's name, which may contain any character. */
const fieldsOf = (stat: string) => stat.slice(stat.lastIndexOf(")") + 2).split(" ");

/** Whether the process has the socket open, or may have: a process of the same user whose descriptors can't be read. */
async function holds(pid: number, { uid, inode }: SocketRow): Promise<boolean> {
  const folder = `/proc/${pid}/fd`;
  try {
    for (const name of await readdir(folder)) {
      const target = await readlink(`${folder}/${name}`).catch(() => "");
      if (target === `socket:[${inode}]`) return true;
    }
    return false;
  } catch (error) {
    if (codeOf(error) !== "EACCES" && codeOf(error) !== "EPERM") return false;
    const status = await textOf(`/proc/${pid}/status`);
    return Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]) === uid;
  }
}

/** Empty if it is gone, or another user's. */
function textOf(path: string): Promise<string> {
  return readFile(path, "latin1").catch(() => "");
}
