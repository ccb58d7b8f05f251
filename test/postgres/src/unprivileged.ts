import { spawnSync } from "node:child_process";

/** PostgreSQL and PgBouncer refuse to run as root: an unprivileged user owns it then. */
export function unprivileged(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const id = (flag: string) => Number(spawnSync("id", [flag, "nobody"], { encoding: "utf8" }).stdout);
  return { uid: id("-u"), gid: id("-g") };
}
