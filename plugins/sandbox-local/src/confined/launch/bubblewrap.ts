import { execFile } from "node:child_process";
import { access, mkdir, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Evidence } from "@ambit/core/plugin";

const execute = promisify(execFile);
const options = { cwd: "/", env: { PATH: "/usr/bin:/bin" }, timeout: 10_000 } as const;

/**
 * This host's bubblewrap, for each sandbox's evidence: its version and, as `bubblewrapWarning`, a known hole that it has
 * here, why jails don't depend on it, and its fix.
 *
 * @param folder only the runner writes to it.
 */
export async function inspectBubblewrap(program: string, folder: string): Promise<Evidence> {
  const { stdout } = await execute(program, ["--version"], options);
  const bubblewrap = /\d[\w.+~-]*/.exec(stdout)?.[0] ?? "of an unknown version";
  if (!(await followsLinksOfTargets(program, join(folder, "bubblewrap")))) return { bubblewrap };
  return { bubblewrap, bubblewrapWarning: warningOf(bubblewrap) };
}

export const warningOf = (version: string) =>
  `bubblewrap ${version} follows links out of a sandbox while it sets it up (CVE-2026-87766), which Ambit's jails avoid: install bubblewrap 0.12 or newer, or a package with the fix`;

/**
 * Tries the hole, since a package may have the fix and an old version: a mount on a path that leads through a link to
 * `/oldroot`. The link's target is an empty folder of our own.
 */
async function followsLinksOfTargets(program: string, folder: string): Promise<boolean> {
  const [shown, decoy] = [join(folder, "shown"), join(folder, "decoy")];
  try {
    await mkdir(shown, { recursive: true });
    await mkdir(decoy);
    await symlink(`/oldroot${decoy}`, join(shown, "link"));
    const mounts = ["--bind", shown, "/shown", "--ro-bind", "/dev/null", "/shown/link/made"];
    // There is no such program in it: it fails in any case, and what it left behind tells.
    await execute(program, ["--unshare-user", ...mounts, "--", "/none"], options).catch(() => undefined);
    return await access(join(decoy, "made")).then(
      () => true,
      () => false,
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
