import { existsSync, realpathSync, statSync } from "node:fs";
import { dirname, join, resolve, sep } from "node:path";
import { ConfigurationInvalid } from "./problems.js";

const names = ["ambit.config.mjs", "ambit.config.json"] as const;

/**
 * The configuration's absolute path: the one that was named, or the one in the folder; undefined for none.
 * @param named by `--config` or AMBIT_CONFIG, relative to the folder.
 * @param copied of `--folder`: one that is found there isn't the user's by itself. It came with a repository, or an agent wrote it,
 * and it would run on the host.
 * @throws ConfigurationInvalid
 */
export function findConfiguration(
  named: string | undefined,
  folder: string,
  copied?: string,
): string | undefined {
  if (named !== undefined) {
    const path = resolve(folder, named);
    if (!existsSync(path)) throw new ConfigurationInvalid(named, ["there is no such file"]);
    if (!/\.(mjs|js|json)$/.test(path))
      throw new ConfigurationInvalid(named, ["must be a .mjs, .js or .json file"]);
    return path;
  }
  const found = names.map((name) => join(folder, name)).filter((path) => existsSync(path));
  if (found.length > 1) throw new ConfigurationInvalid(folder, [`has both ${names.join(" and ")}: keep one`]);
  const [path] = found;
  if (path !== undefined && copied !== undefined && isIn(copied, path))
    throw new ConfigurationInvalid(path, [
      `lies in the folder that the agent's changes are for, and would run outside the sandbox: if you trust it, add --config ${path}; else run the command in another folder`,
    ]);
  if (path !== undefined) refuseForeign(path);
  return path;
}

/**
 * As root, a configuration that another user wrote would run with root's rights.
 * @throws ConfigurationInvalid
 */
export function refuseForeign(
  path: string,
  callerId: number | undefined = process.getuid?.(),
  { SUDO_UID: behindSudo }: NodeJS.ProcessEnv = process.env,
): void {
  if (callerId !== 0) return;
  const trusted = [0, ...(behindSudo === undefined ? [] : [Number(behindSudo)])];
  const foreign = [dirname(path), path].find((place) => !trusted.includes(statSync(place).uid));
  if (foreign === undefined) return;
  throw new ConfigurationInvalid(path, [
    `${foreign} belongs to another user, and would run as root: if you trust it, add --config ${path}; else run the command in another folder`,
  ]);
}

/** Whether the file, or what it links to, is in a folder that exists. */
function isIn(folder: string, file: string): boolean {
  if (!existsSync(folder)) return false;
  const root = realpathSync(folder);
  return [dirname(file), file].some((path) => `${realpathSync(path)}${sep}`.startsWith(`${root}${sep}`));
}
