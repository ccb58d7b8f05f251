import { randomBytes } from "node:crypto";
import { chmod, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { outcomeOnHost } from "./on-host.js";
import {
  closedBoundary,
  emptyBoundary,
  expectThat,
  readOnlyBoundary,
  runIn,
  shell,
  type Trial,
} from "./trial.js";

/** Prints the name of every attempt that succeeded, then the marker. `$1`: a folder of the host with a secret. */
const attempts = `
try() { name=$1; shift; if "$@" >/dev/null 2>&1; then echo "$name"; fi; }
try read-decoy cat "$1/secret"
try list-decoy ls "$1"
try read-through-proc cat "/proc/1/root$1/secret"
try read-by-parents cat "../../../../../..$1/secret"
try write-decoy sh -c 'echo x > "$1/written"' sh "$1"
try read-shadow cat /etc/shadow
try list-root ls /root
try write-root sh -c 'echo x > /ambit-probe'
try write-usr sh -c 'echo x > /usr/ambit-probe'
try write-etc sh -c 'echo x > /etc/ambit-probe'
try write-dev sh -c 'echo x > /dev/ambit-probe'
try write-kernel sh -c 'true >> /proc/sys/kernel/core_pattern'
try remount mount -o remount,rw,bind /usr
try write-workspace sh -c 'echo x > /workspace/made'
try write-scratch sh -c 'echo x > "$TMPDIR/made"'
try read-workspace cat /workspace/given
echo ran`;

const controlAttempts = ["read-decoy", "list-decoy", "read-by-parents"];

async function withDecoy<Result>(use: (folder: string) => Promise<Result>): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), "ambit-probe-"));
  try {
    await writeFile(join(folder, "secret"), randomBytes(8).toString("hex"));
    await chmod(join(folder, "secret"), 0o644);
    // World-accessible, so that only the jail can deny access.
    await chmod(folder, 0o777);
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const trial: Trial = {
  shows: ["filesystem.host-hidden", "filesystem.workspace-only", "filesystem.read-only", "filesystem.none"],
  run: (bench) =>
    withDecoy(async (folder) => {
      const [write, read, none] = await Promise.all([
        bench.shared(closedBoundary),
        bench.shared(readOnlyBoundary),
        bench.shared(emptyBoundary),
      ]);
      for (const sandbox of [write, read])
        await sandbox.writeFiles([{ path: "/workspace/given", content: "given" }]);
      const argv = [...shell(attempts), "sh", folder] as const;
      const succeeded = (stdout: string) => {
        const names = stdout.trim().split("\n");
        expectThat(names.pop() === "ran", "the attempts didn't run to their end, so nothing is proven");
        return names;
      };
      const [inWrite, inRead, inNone] = (
        await Promise.all([write, read, none].map((sandbox) => runIn(sandbox, argv)))
      ).map(({ stdout }) => succeeded(stdout));
      const control = succeeded(await outcomeOnHost(argv, write.evidence.uid));
      expectThat(
        [...controlAttempts, "write-decoy"].every((name) => control.includes(name)),
        "the control didn't reach the decoy on this host either, so nothing is proven",
      );
      await rm(join(folder, "written"), { force: true });
      const only = (found: readonly string[] | undefined, wanted: readonly string[], where: string) => {
        const odd = [
          ...(found ?? []).filter((name) => !wanted.includes(name)),
          ...wanted.filter((name) => !found?.includes(name)),
        ];
        expectThat(odd.length === 0, `${where}: unexpected outcome of ${odd.join(", ")}`);
      };
      only(inWrite, ["write-workspace", "write-scratch", "read-workspace"], "with a workspace");
      only(inRead, ["write-scratch", "read-workspace"], "with a read-only workspace");
      // Its place is scratch: removed with the process, and not on the host.
      only(inNone, ["write-workspace", "write-scratch"], "without a workspace");
      expectThat(
        new TextDecoder().decode(await write.readFile("/workspace/made")) === "x\n",
        "a write in the workspace didn't arrive",
      );
      const again = await runIn(none, shell("ls -A /workspace; echo ran"));
      expectThat(again.stdout === "ran\n", "a file remained where there should be no workspace");
      expectThat((await readdir(folder)).join() === "secret", "a jail wrote beside the decoy");
      const outside = "/usr, /etc, /, /dev, kernel settings and a host folder open to everybody";
      return {
        "filesystem.host-hidden":
          "a world-readable file could be read on the host but in no jail: not by path, through .. or /proc/1/root",
        "filesystem.workspace-only": `a write in the workspace arrived; writes to ${outside}, and a remount, failed`,
        "filesystem.read-only": `a given file was read; writes to the workspace, ${outside} failed; scratch could be written`,
        "filesystem.none":
          "the workspace didn't exist inside, and what was written at its place was gone with the process",
      };
    }),
};

export const filesystemTrials: readonly Trial[] = [trial];
