import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Command } from "@ambit/core/plugin";

/** What a harmless command prints as the same user without a jail: a trial's control. */
export async function outcomeOnHost(
  [program, ...args]: Command["argv"],
  uid: unknown,
  environment: Readonly<Record<string, string>> = {},
): Promise<string> {
  const user = process.getuid?.() === 0 && typeof uid === "number" ? { uid, gid: uid } : {};
  const { stdout } = await promisify(execFile)(program, args, {
    ...user,
    cwd: "/",
    env: { PATH: "/usr/local/bin:/usr/bin:/bin", ...environment },
    timeout: 10_000,
  });
  return stdout;
}
