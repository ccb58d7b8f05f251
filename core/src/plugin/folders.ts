import os from "node:os";
import { join } from "node:path";

/** The user that Ambit runs as has no home: an id without an entry in /etc/passwd, and no `HOME`. */
export class HomeMissing extends Error {
  override readonly name = "HomeMissing";

  /** @param variable names the folder instead. */
  constructor(variable: string, cause: unknown) {
    super(`This user has no home folder: set ${variable} to a folder that it can write, or HOME`, { cause });
  }
}

type Variables = Readonly<Record<string, string | undefined>>;

/**
 * A user's folder by the XDG rules: the absolute path that the variable holds, or the default below the user's home.
 *
 * @param variable such as `XDG_STATE_HOME`.
 * @param inHome such as `.local/state`.
 * @throws HomeMissing
 */
export function userFolder(variable: string, inHome: string, environment: Variables = process.env): string {
  const named = environment[variable];
  if (named?.startsWith("/")) return named;
  try {
    return join(os.homedir(), inHome);
  } catch (error) {
    throw new HomeMissing(variable, error);
  }
}

/**
 * The default folder of what outlives a run: `/var/lib/ambit` for root.
 *
 * @param below the path of a folder within it, such as `daytona`. Default: the folder itself.
 * @throws HomeMissing
 */
export function stateFolder(
  below = "",
  environment: Variables = process.env,
  uid: number | undefined = process.getuid?.(),
): string {
  if (uid === 0) return join("/var/lib/ambit", below);
  return join(userFolder("XDG_STATE_HOME", ".local/state", environment), "ambit", below);
}
