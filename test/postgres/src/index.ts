import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, readdirSync } from "node:fs";
import { chown, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { unprivileged } from "./unprivileged.js";

export { type PgBouncer, pgbouncerIsMissing, startPgBouncer } from "./pgbouncer.js";

const debianFolder = "/usr/lib/postgresql";

/** The programs of the newest installed version, or why there are none. */
function programs(): { readonly folder: string } | { readonly reason: string } {
  const versions = existsSync(debianFolder) ? readdirSync(debianFolder) : [];
  const [newest] = versions
    .filter((version) => existsSync(join(debianFolder, version, "bin", "postgres")))
    .toSorted((one, other) => Number(other) - Number(one));
  if (newest === undefined) return { reason: "PostgreSQL isn't installed: apt-get install postgresql" };
  return { folder: join(debianFolder, newest, "bin") };
}

/** What is missing to start a server; undefined if nothing is. */
export function postgresIsMissing(): string | undefined {
  const found = programs();
  return "reason" in found ? found.reason : undefined;
}

export interface Postgres {
  /** A connection string over its unix socket. */
  readonly url: string;
  /** Settings for its data, without protection against power failures. */
  readonly folder: string;
  /** Kills it, like a crash of the server, and starts it again. */
  restart(whileDown?: () => Promise<void>): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a server in a folder of its own that listens on a unix socket there, and nowhere else. */
export async function startPostgres(): Promise<Postgres> {
  const found = programs();
  if ("reason" in found) throw new Error(found.reason);
  const user = unprivileged();
  const folder = await mkdtemp(join(tmpdir(), "ambit-pg-"));
  chmodSync(folder, 0o755);
  if (user !== undefined) await chown(folder, user.uid, user.gid);
  const data = join(folder, "data");
  const environment = { PATH: "/usr/bin:/bin", LC_ALL: "C" };
  const options = { ...user, cwd: folder, env: environment };
  const made = spawnSync(
    join(found.folder, "initdb"),
    ["-D", data, "-U", "ambit", "--auth=trust", "--no-sync", "--encoding=UTF8", "--no-instructions"],
    { ...options, encoding: "utf8" },
  );
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr || made.error?.message}`);
  const settings = [
    ...["listen_addresses=", `unix_socket_directories=${folder}`, "max_connections=100"],
    ...["fsync=off", "shared_buffers=32MB", "dynamic_shared_memory_type=mmap", "log_min_messages=fatal"],
  ];
  const start = async () => {
    const server = spawn(
      join(found.folder, "postgres"),
      ["-D", data, ...settings.flatMap((setting) => ["-c", setting])],
      { ...options, stdio: "ignore" },
    );
    // The server ends with the test's process, even if that is killed.
    const end = () => server.kill("SIGQUIT");
    process.once("exit", end);
    server.once("exit", () => process.off("exit", end));
    await ready(folder, () => server.exitCode !== null);
    return server;
  };
  let server = await start();
  const stop = async (signal: "SIGQUIT" | "SIGINT") => {
    const gone = server.exitCode === null ? once(server, "exit") : undefined;
    server.kill(signal);
    await gone;
  };
  return {
    url: `postgresql://ambit@/postgres?host=${encodeURIComponent(folder)}`,
    folder,
    restart: async (whileDown) => {
      await stop("SIGQUIT");
      await whileDown?.();
      server = await start();
    },
    stop: async () => {
      await stop("SIGQUIT");
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function ready(folder: string, hasEnded: () => boolean): Promise<void> {
  for (;;) {
    if (hasEnded()) throw new Error(`PostgreSQL ended while it started in ${folder}`);
    const lines = (await readFile(join(folder, "data", "postmaster.pid"), "utf8").catch(() => "")).split(
      "\n",
    );
    if (lines[7]?.trim() === "ready") return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
