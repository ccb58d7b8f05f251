import { join } from "node:path";
import { HomeMissing, userFolder } from "@ambit/core/plugin";

/**
 * Where `ambit agents install` puts agents, each in a folder named after it. Environment: `XDG_DATA_HOME`.
 *
 * @throws HomeMissing
 */
export function agentsFolder(environment: NodeJS.ProcessEnv = process.env): string {
  return join(userFolder("XDG_DATA_HOME", ".local/share", environment), "ambit", "agents");
}

/** Where one agent would have been put; undefined for a user without a home, who has installed none. */
export function installedFolder(id: string): string | undefined {
  try {
    return join(agentsFolder(), id);
  } catch (error) {
    if (error instanceof HomeMissing) return undefined;
    throw error;
  }
}
