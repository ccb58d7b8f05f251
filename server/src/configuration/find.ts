import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { ConfigurationInvalid } from "./problems.js";

const names = ["ambit.config.mjs", "ambit.config.json"] as const;

/**
 * The configuration's absolute path: the one that was named, or the one in the folder; undefined for none.
 * @param named by `--config` or AMBIT_CONFIG, relative to the folder.
 * @throws ConfigurationInvalid
 */
export function findConfiguration(named: string | undefined, folder: string): string | undefined {
  if (named !== undefined) {
    const path = resolve(folder, named);
    if (!existsSync(path)) throw new ConfigurationInvalid(named, ["there is no such file"]);
    if (!/\.(mjs|js|json)$/.test(path))
      throw new ConfigurationInvalid(named, ["must be a .mjs, .js or .json file"]);
    return path;
  }
  const found = names.map((name) => join(folder, name)).filter((path) => existsSync(path));
  if (found.length > 1) throw new ConfigurationInvalid(folder, [`has both ${names.join(" and ")}: keep one`]);
  return found[0];
}
