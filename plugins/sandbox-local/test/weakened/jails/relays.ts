import { readdir, readFile } from "node:fs/promises";
import { inside } from "../../../dist/confined/arguments.js";

/**
 * Ends the relays of a session whose jails shared the host's process ids, since no namespace ended them with their
 * jail. Attacks look for other processes that it left.
 */
export async function endRelays(session: string): Promise<void> {
  const ids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  await Promise.all(
    ids.map(async (id) => {
      // One that ended meanwhile, or belongs to another user, isn't a relay of this session.
      const read = (name: string) => readFile(`/proc/${id}/${name}`, "utf8").catch(() => "");
      const command = await read("cmdline");
      if (!command.split("\0").includes(inside.relayProgram)) return;
      const mounts = await read("mountinfo");
      // The folder of a closed session is renamed: its id, and a random suffix.
      if (!mounts.includes(`/${session}/`) && !mounts.includes(`/${session}-`)) return;
      try {
        process.kill(Number(id), "SIGKILL");
      } catch (error) {
        if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
      }
    }),
  );
}
