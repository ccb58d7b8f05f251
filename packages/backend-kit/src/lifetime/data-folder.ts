import { homedir } from "node:os";
import { join } from "node:path";

/**
 * The default folder of a backend's data that outlives a run.
 *
 * @param below its folder in Ambit's folder, such as `daytona`.
 */
export function defaultDataFolder(
  below = "",
  environment: Readonly<Record<string, string | undefined>> = process.env,
  uid: number | undefined = process.getuid?.(),
): string {
  if (uid === 0) return join("/var/lib/ambit", below);
  const state = environment.XDG_STATE_HOME;
  return join(state?.startsWith("/") ? state : join(homedir(), ".local", "state"), "ambit", below);
}
