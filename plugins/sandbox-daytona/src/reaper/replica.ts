import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { chmod, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { homedir, hostname } from "node:os";
import { join } from "node:path";
import { SandboxFailed } from "@ambit/core/plugin";

/** Where findings and sockets are when the configuration doesn't say. */
export function defaultDataFolder(
  environment: Readonly<Record<string, string | undefined>> = process.env,
  uid: number | undefined = process.getuid?.(),
): string {
  if (uid === 0) return "/var/lib/ambit/daytona";
  const state = environment.XDG_STATE_HOME;
  return join(state?.startsWith("/") ? state : join(homedir(), ".local", "state"), "ambit", "daytona");
}

/** Bytes of a socket's path that every system takes. */
const longestSocket = 103;

/** One process of a runner, known to others of this host by a socket that answers while it lives. */
export interface Replica {
  /** `<host and folder>-<process>`. */
  readonly name: string;
  /** Whether that replica was of this host and folder, and is no more. Of others nothing is known. */
  isDead(name: string): Promise<boolean>;
}

/** @throws SandboxFailed when the folder can't be used. */
export async function claimReplica(dataFolder: string): Promise<Replica> {
  try {
    await mkdir(dataFolder, { recursive: true, mode: 0o700 });
    await chmod(dataFolder, 0o700);
    const home = await homeKey(dataFolder);
    await removeDeadSockets(dataFolder);
    const own = randomBytes(6).toString("hex");
    const path = join(dataFolder, `${own}.sock`);
    // Node.js cuts a longer one off in silence, and all runners would share what is left.
    if (Buffer.byteLength(path) > longestSocket) throw new Error(`${path} is too long for a socket`);
    await listenUntilExit(path);
    return {
      name: `${home}-${own}`,
      async isDead(name) {
        const [host, key] = name.split("-");
        if (host !== home || key === undefined || !/^[0-9a-f]{12}$/.test(key) || key === own) return false;
        return !(await answers(join(dataFolder, `${key}.sock`)));
      },
    };
  } catch (cause) {
    throw new SandboxFailed(`${dataFolder} can't be used: set sandbox-daytona's dataFolder to a short path`, {
      cause,
    });
  }
}

/** A replica without a socket is as dead as one whose socket doesn't answer. */
async function removeDeadSockets(dataFolder: string): Promise<void> {
  const sockets = (await readdir(dataFolder)).filter((name) => name.endsWith(".sock"));
  for (const path of sockets.map((name) => join(dataFolder, name))) {
    if (!(await answers(path))) await rm(path, { force: true });
  }
}

/** The same for all runners that share this folder on this host: a folder on a network disk has one for each. */
async function homeKey(dataFolder: string): Promise<string> {
  const path = join(dataFolder, `host-${hostname().replaceAll(/[^\w.-]/g, "_")}`);
  try {
    await writeFile(path, randomBytes(6).toString("hex"), { flag: "wx", mode: 0o600 });
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
  const key = await readFile(path, "utf8");
  if (!/^[0-9a-f]{12}$/.test(key)) throw new Error(`${path} holds no key`);
  return key;
}

function listenUntilExit(path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once("error", reject);
    server.listen(path, () => {
      server.unref();
      removeAtExit(path);
      resolve();
    });
  });
}

const ownSockets = new Set<string>();

/** One listener for all: a process may have several folders. */
function removeAtExit(path: string): void {
  if (ownSockets.size === 0) {
    process.once("exit", () => {
      for (const each of ownSockets) rmSync(each, { force: true });
    });
  }
  ownSockets.add(path);
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", (error) => {
      const gone = "code" in error && (error.code === "ECONNREFUSED" || error.code === "ENOENT");
      if (gone) resolve(false);
      else reject(error);
    });
  });
}
