import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { chmod, link, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { connect, createServer, type Server } from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";
import { codeOf, messageOf, SandboxFailed } from "@ambit/core/plugin";
import { inFolder, type OpenFolder, openFolder } from "../safe-fs.js";

/** Bytes of a socket's path that every system supports. */
const maxPathBytes = 103;

/**
 * A socket that listens as long as this process lives: the kernel closes it however the process ends, SIGKILL included,
 * and containers that share the folder see that too. A pid in a file shows neither. It doesn't keep the process alive.
 *
 * @throws what the system says, such as EADDRINUSE.
 */
export async function listenAt(folder: OpenFolder, name: string): Promise<Server> {
  // By descriptor if possible, since a folder's path may be longer than a socket's path may be.
  const path = inFolder(folder, name);
  // Node.js silently truncates a longer one, and all sockets of the folder would share the result.
  if (Buffer.byteLength(path) > maxPathBytes) throw new Error(`${path} is too long for a socket`);
  const server = createServer((connection) => connection.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, () => resolve());
  });
  server.unref();
  return server;
}

/** Whether a process listens there. Only two refusals say that none does; after any other, one may be alive. */
export function isListening(folder: OpenFolder, name: string): Promise<boolean> {
  return new Promise<boolean>((resolve) => {
    const connection = connect(inFolder(folder, name));
    connection.once("connect", () => resolve(true));
    connection.once("error", (error) => resolve(!["ENOENT", "ECONNREFUSED"].includes(codeOf(error) ?? "")));
    connection.once("close", () => connection.destroy());
    connection.once("connect", () => connection.destroy());
  });
}

const actions = new Set<() => void>();

/**
 * Runs a synchronous action when the process ends normally. There is one listener for all actions.
 *
 * @returns takes the action back.
 */
export function atExit(action: () => void): () => void {
  if (actions.size === 0) process.once("exit", runAll);
  actions.add(action);
  return () => {
    actions.delete(action);
    if (actions.size === 0) process.off("exit", runAll);
  };
}

function runAll(): void {
  for (const action of actions) action();
}

export type ReplicaState = "alive" | "dead" | "unknown";

/** One process of a runner, known to others of this host by a socket that responds while it lives. */
export interface Replica {
  /** `<host and folder>-<process>`. */
  readonly name: string;
  /** The state of replicas that share this host and folder; `unknown` for all others, and if the folder can't be read. */
  stateOf(name: string): Promise<ReplicaState>;
}

const socketOf = (key: string) => `${key}.sock`;

/**
 * @param plugin whose setting `dataFolder` names the folder.
 * @throws SandboxFailed when the folder can't be used.
 */
export async function claimReplica(dataFolder: string, plugin: string): Promise<Replica> {
  try {
    await mkdir(dataFolder, { recursive: true, mode: 0o700 });
    await chmod(dataFolder, 0o700);
    const home = await homeKey(dataFolder);
    const processKey = randomBytes(6).toString("hex");
    await withOpenFolder(dataFolder, async (folder) => {
      await removeDeadSockets(folder);
      await listenAt(folder, socketOf(processKey));
    });
    atExit(() => rmSync(join(dataFolder, socketOf(processKey)), { force: true }));
    return {
      name: `${home}-${processKey}`,
      async stateOf(name) {
        const [host, key] = name.split("-");
        if (host !== home || key === undefined || !/^[0-9a-f]{12}$/.test(key)) return "unknown";
        if (key === processKey) return "alive";
        return withOpenFolder(dataFolder, async (folder) => {
          return (await isListening(folder, socketOf(key))) ? "alive" : "dead";
        }).catch(() => "unknown" as const);
      },
    };
  } catch (cause) {
    const why = codeOf(cause) ?? messageOf(cause);
    throw new SandboxFailed(
      `${dataFolder} can't be used (${why}): set ${plugin}'s dataFolder to a folder of the runner's user, with a short path`,
      { cause },
    );
  }
}

async function withOpenFolder<Result>(
  path: string,
  action: (folder: OpenFolder) => Promise<Result>,
): Promise<Result> {
  const folder = await openFolder(path);
  try {
    return await action(folder);
  } finally {
    await folder.handle.close();
  }
}

/** A replica without a socket is dead, like one whose socket doesn't respond. */
async function removeDeadSockets(folder: OpenFolder): Promise<void> {
  for (const name of await readdir(folder.path)) {
    if (name.endsWith(".sock") && !(await isListening(folder, name))) {
      await rm(join(folder.path, name), { force: true });
    }
  }
}

/** The same for all runners that share this folder on this host. A folder on a network disk has one per host. */
async function homeKey(dataFolder: string): Promise<string> {
  const path = join(dataFolder, `host-${hostname().replaceAll(/[^\w.-]/g, "_")}`);
  // Linked into place when it is complete, since runners may start at the same time, or end in between.
  const draft = `${path}.${randomBytes(6).toString("hex")}`;
  try {
    await writeFile(draft, randomBytes(6).toString("hex"), { flag: "wx", mode: 0o600 });
    await link(draft, path);
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
  } finally {
    await rm(draft, { force: true });
  }
  const key = await readFile(path, "utf8");
  if (!/^[0-9a-f]{12}$/.test(key)) throw new Error(`${path} holds no key`);
  return key;
}
