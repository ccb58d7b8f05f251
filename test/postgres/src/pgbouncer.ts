import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync } from "node:fs";
import { chown, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { unprivileged } from "./unprivileged.js";

const program = "/usr/sbin/pgbouncer";

/** What is missing to start a pooler; undefined if nothing is. */
export function pgbouncerIsMissing(): string | undefined {
  return existsSync(program) ? undefined : "PgBouncer isn't installed: apt-get install pgbouncer";
}

export interface PgBouncer {
  /** A connection string over its unix socket. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Debian's PgBouncer in front of a server's unix socket, on one in a folder of its own. */
export async function startPgBouncer(
  { folder: server }: { readonly folder: string },
  settings: {
    readonly pool_mode: "session" | "transaction" | "statement";
    readonly ignore_startup_parameters?: string;
  },
): Promise<PgBouncer> {
  const user = unprivileged();
  const folder = await mkdtemp(join(tmpdir(), "ambit-pgbouncer-"));
  chmodSync(folder, 0o755);
  const file = join(folder, "pgbouncer.ini");
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
  await writeFile(
    file,
    [
      "[databases]",
      `postgres = host=${server} dbname=postgres user=ambit`,
      "[pgbouncer]",
      ...[`unix_socket_dir = ${folder}`, "listen_port = 5432", "listen_addr =", "auth_type = any"],
      // Fewer than its clients: they share them.
      ...["default_pool_size = 3", "max_client_conn = 200", ...lines, ""],
    ].join("\n"),
  );
  if (user !== undefined) for (const path of [folder, file]) await chown(path, user.uid, user.gid);
  const pooler = spawn(program, [file], { ...user, cwd: folder, stdio: "ignore" });
  const end = () => pooler.kill("SIGKILL");
  process.once("exit", end);
  pooler.once("exit", () => process.off("exit", end));
  while (!existsSync(join(folder, ".s.PGSQL.5432"))) {
    if (pooler.exitCode !== null) throw new Error(`PgBouncer ended while it started in ${folder}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return {
    url: `postgresql://ambit@/postgres?host=${encodeURIComponent(folder)}`,
    stop: async () => {
      const gone = pooler.exitCode === null ? once(pooler, "exit") : undefined;
      pooler.kill("SIGKILL");
      await gone;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
