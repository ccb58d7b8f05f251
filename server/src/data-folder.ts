import { homedir } from "node:os";
import { join } from "node:path";

/** The server's own folder of the host, where it keeps what outlives it: `/var/lib/ambit` for root. */
export function dataFolder(
  environment: Readonly<Record<string, string | undefined>> = process.env,
  uid: number | undefined = process.getuid?.(),
): string {
  if (uid === 0) return "/var/lib/ambit";
  const state = environment.XDG_STATE_HOME;
  return join(state?.startsWith("/") ? state : join(homedir(), ".local", "state"), "ambit");
}
