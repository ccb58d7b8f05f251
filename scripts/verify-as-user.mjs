/**
 * `ambit verify --json` as an ordinary user, from root's checkout that this user may not be able to reach: it is shown
 * read-only in a separate mount namespace. Prints the report. Needs root; run by any other user it is `ambit verify
 * --json` itself.
 */
import { spawnSync } from "node:child_process";
import { chownSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "./setup.mjs";

/** An unused id: above those that sandbox-local reserves, and above those of logins. */
const ordinaryUser = 65_432;

const inNamespace = `
mount --bind "$1" "$2"
mount -o remount,bind,ro "$2"
cd "$2"
exec setpriv --reuid ${ordinaryUser} --regid ${ordinaryUser} --clear-groups env HOME="$3" "$4" server/dist/cli/main.js verify --json`;

/** @returns {number} the command's exit code */
function verifyAsOrdinaryUser() {
  if (process.getuid?.() !== 0) {
    return exitCodeOf(process.execPath, [join(root, "server/dist/cli/main.js"), "verify", "--json"]);
  }
  const folder = mkdtempSync(join(tmpdir(), "ambit-verify-"));
  try {
    const [shown, home] = [join(folder, "checkout"), join(folder, "home")];
    for (const path of [shown, home]) mkdirSync(path);
    for (const path of [folder, home]) chownSync(path, ordinaryUser, ordinaryUser);
    const shell = ["--mount", "sh", "-euc", inNamespace, "sh", root, shown, home, process.execPath];
    return exitCodeOf("unshare", shell);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * @param {string} command
 * @param {readonly string[]} args
 */
function exitCodeOf(command, args) {
  const { status, error } = spawnSync(command, args, { stdio: ["ignore", "inherit", "inherit"] });
  if (error) throw error;
  return status ?? 1;
}

process.exitCode = verifyAsOrdinaryUser();
