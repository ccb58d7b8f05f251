import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { SandboxFailed } from "@ambit/core/plugin";
import { inside } from "../../../dist/confined/arguments.js";

/** A user namespace that jails and decoys can share. */
export interface SharedUserNamespace {
  /** Its user, and root with CAP_SYS_PTRACE, may open it. */
  readonly path: string;
  close(): Promise<void>;
}

const patienceMs = 5_000;

/** @param user the owner of the namespace, if that isn't the runner's own user. */
export async function openUserNamespace(
  user: { readonly uid: number; readonly gid: number } | undefined,
): Promise<SharedUserNamespace> {
  const id = String(inside.uid);
  // Ends with its input, and so with the runner.
  const holder = spawn("unshare", ["--user", `--map-user=${id}`, `--map-group=${id}`, "--", "cat"], {
    cwd: "/",
    env: { PATH: "/usr/bin:/bin" },
    stdio: ["pipe", "ignore", "ignore"],
    ...(user === undefined ? {} : { uid: user.uid, gid: user.gid }),
  });
  await once(holder, "spawn");
  const ended = once(holder, "exit");
  const path = `/proc/${holder.pid}/ns/user`;
  const end = async () => {
    holder.kill("SIGKILL");
    await ended;
  };
  try {
    const late = Date.now() + patienceMs;
    while ((await readFile(`/proc/${holder.pid}/gid_map`, "utf8")).trim().split(/\s+/)[0] !== id) {
      if (Date.now() > late) throw new SandboxFailed("A shared user namespace didn't start");
      await delay(2);
    }
    return { path, close: end };
  } catch (error) {
    await end();
    throw error;
  }
}
