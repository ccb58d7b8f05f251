import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { chmod, link, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { codeOf, messageOf, SandboxFailed } from "@ambit/core/plugin";
import { type OpenFolder, openFolder } from "../safe-fs/index.js";
import { atExit } from "./at-exit.js";
import { isListening, listenAt } from "./lifeline.js";

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
    const own = randomBytes(6).toString("hex");
    await withOpenFolder(dataFolder, async (folder) => {
      await removeDeadSockets(folder);
      await listenAt(folder, socketOf(own));
    });
    atExit(() => rmSync(join(dataFolder, socketOf(own)), { force: true }));
    return {
      name: `${home}-${own}`,
      async stateOf(name) {
        const [host, key] = name.split("-");
        if (host !== home || key === undefined || !/^[0-9a-f]{12}$/.test(key)) return "unknown";
        if (key === own) return "alive";
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
