import { homedir } from "node:os";
import { join } from "node:path";

/** Where `ambit agents install` puts agents, each in a folder named after it. Environment: `XDG_DATA_HOME`. */
export function agentsFolder(environment: NodeJS.ProcessEnv = process.env): string {
  const data = environment.XDG_DATA_HOME;
  return join(data?.startsWith("/") ? data : join(homedir(), ".local", "share"), "ambit", "agents");
}
