import { readdir, readFile, readlink } from "node:fs/promises";
import { isIPv4, isIPv6 } from "node:net";
import { endianness } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { codeOf, type LocalConnection } from "@ambit/core/plugin";
import { markArgument, markOn, ownSessions, readStat } from "./host-processes.js";

/** The kernel's data on a socket: its owner and its inode. */
export interface SocketRow {
  readonly uid: number;
  /** 0 if no process holds it any more. */
  readonly inode: number;
}

/**
 * The rows of the caller's end of a connection in `/proc/net/tcp` or `tcp6`, without those that the table lists twice.
 * Only the row of exactly this connection counts: other sockets may have the same two ports, even the runner's own. Pure.
 */
export function socketsOf(table: string, connection: LocalConnection): readonly SocketRow[] {
  const { localAddress, localPort, remoteAddress, remotePort } = connection;
  const caller = endOf(remoteAddress, remotePort);
  const runner = endOf(localAddress, localPort);
  const rows = new Map<number, SocketRow>();
  for (const line of table.split("\n")) {
    const [, local = "", remote = "", , , , , uid, , inode] = line.trim().split(/\s+/);
    if (sameEnd(local, caller) && sameEnd(remote, runner))
      rows.set(Number(inode), { uid: Number(uid), inode: Number(inode) });
  }
  return [...rows.values()];
}

/** An end of a connection: the address as the kernel writes it, IPv4 as IPv4-mapped, and the port. */
const sameEnd = (row: string, end: string) => row.length > 5 && mapped(row) === end;

function mapped(row: string): string {
  return row.length === ipv4RowLength ? `${mappedPrefix}${row}` : row;
}

/** `::ffff:0:0/96` as three little-endian words. */
const mappedPrefix = "0000000000000000FFFF0000";
/** `0100007F:223D` */
const ipv4RowLength = 13;

/** `127.0.0.1`, 8765 → `0000000000000000FFFF00000100007F:223D`. */
function endOf(address: string, port: number): string {
  const bytes = bytesOf(address);
  let words = "";
  for (let word = 0; word < bytes.length; word += 4) {
    // The kernel prints each word of four bytes as a number of this host.
    const reversed = hostIsLittleEndian
      ? bytes.slice(word, word + 4).toReversed()
      : bytes.slice(word, word + 4);
    words += reversed.map((byte) => hexadecimal(byte, 2)).join("");
  }
  return `${words}:${hexadecimal(port, 4)}`;
}

const hostIsLittleEndian = endianness() === "LE";
const hexadecimal = (value: number, digits: number) => value.toString(16).toUpperCase().padStart(digits, "0");

/** The 16 bytes of an address; IPv4 as IPv4-mapped. Empty for what is no address: no row matches it. */
function bytesOf(address: string): readonly number[] {
  const [bare = ""] = address.split("%");
  const full = isIPv4(bare) ? `::ffff:${bare}` : bare;
  if (!isIPv6(full)) return [];
  // Also turns the dotted end of an IPv4-mapped address into two groups.
  const [before = [], after = []] = new URL(`http://[${full}]`).hostname
    .slice(1, -1)
    .split("::")
    .map((half) => half.split(":").filter((group) => group !== ""));
  const zeros = Array<string>(8 - before.length - after.length).fill("0");
  return [...before, ...zeros, ...after].flatMap((group) => {
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 255];
  });
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
 * @param ownSession the runner's session: other processes in it belong to no run. @param knownSessions sessions that belong to
 * runs in any case.
 */
export function processesOfRuns(
  all: readonly HostProcess[],
  ownSession: number,
  knownSessions: ReadonlySet<number> = new Set(),
): ReadonlySet<number> {
  const marked = all.filter((process) => process.isMarked);
  const marks = marked.map(({ session }) => session).filter((session) => session !== ownSession);
  const sessions = new Set([...marks, ...knownSessions]);
  const pids = new Set(
    all.filter((process) => process.isMarked || sessions.has(process.session)).map(({ pid }) => pid),
  );
  for (let before = 0; before !== pids.size; ) {
    before = pids.size;
    for (const { pid, parent } of all) if (pids.has(parent)) pids.add(pid);
  }
  return pids;
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

  /** Also true if that can't be determined: no row, one that no process holds any more, or more than one. */
  async isOfRun(connection: LocalConnection): Promise<boolean> {
    const tables = await Promise.all(["/proc/net/tcp", "/proc/net/tcp6"].map(textOf));
    const rows = tables.flatMap((table) => socketsOf(table, connection));
    const ownSockets = await socketsOfThisProcess();
    const others = rows.filter(({ inode }) => !ownSockets.has(inode));
    // The runner called itself.
    if (rows.length > 0 && others.length === 0) return false;
    const [row, another] = others;
    if (row === undefined || another !== undefined || row.inode === 0) return true;
    if (this.#isSessionUser(row.uid)) return true;
    for (const pid of await this.#lookAtAll()) if (await mayHold(pid, row)) return true;
    return false;
  }

  /** Shares a scan that hasn't begun yet; one that is running may have missed the caller. */
  #lookAtAll(): Promise<ReadonlySet<number>> {
    this.#next ??= this.#last.then(async () => {
      this.#next = undefined;
      return processesOfRuns(await everyProcess(), readStat("self")?.session ?? 0, ownSessions);
    });
    this.#last = this.#next.catch(() => undefined);
    return this.#next;
  }
}

async function everyProcess(): Promise<readonly HostProcess[]> {
  const marker = markArgument("");
  const all: HostProcess[] = [];
  let look = (await readdir("/proc")).map(Number);
  for (let again = looksAgain; look.length > 0; again -= 1) {
    const unknown: number[] = [];
    for (const pid of look) {
      if (!Number.isInteger(pid) || pid === process.pid) continue;
      const stat = readStat(pid);
      if (stat === undefined) continue;
      const mark = stat.state === "Z" || stat.isKernelThread ? "unmarked" : markOn(pid, marker);
      if (mark === "unknown" && again > 0) unknown.push(pid);
      else all.push({ pid, parent: stat.parent, session: stat.session, isMarked: mark === "marked" });
    }
    look = unknown;
    if (look.length > 0) await delay(1);
  }
  return all;
}

/** At processes that are just becoming another program. */
const looksAgain = 20;

/** The inodes of the runner's own sockets. */
async function socketsOfThisProcess(): Promise<ReadonlySet<number>> {
  const folder = "/proc/self/fd";
  const targets = await Promise.all(
    (await readdir(folder)).map((name) => readlink(`${folder}/${name}`).catch(() => "")),
  );
  return new Set(targets.flatMap((target) => Number(/^socket:\[(\d+)\]$/.exec(target)?.[1] ?? 0) || []));
}

/** Whether the process has the socket open, or may have: a process of the same user whose descriptors can't be read. */
export async function mayHold(pid: number, { uid, inode }: SocketRow): Promise<boolean> {
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
    // Its descriptors are root's to read once it has ended, and it holds none. In a container nothing may wait for it.
    if (/^State:\s+[ZX]/m.test(status)) return false;
    return Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]) === uid;
  }
}

/** Empty if it is gone, or another user's. */
function textOf(path: string): Promise<string> {
  return readFile(path, "latin1").catch(() => "");
}
