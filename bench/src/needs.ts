import { lookup } from "node:dns/promises";
import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { messageOf } from "@ambit/core";
import { agentsFolder } from "./floors/agent-launch.js";
import { type RealAgent, realAgents } from "./floors/driver-messages.js";
import type { Need } from "./goal.js";
import { openBackend } from "./subjects/sandboxes/confined.js";

/** `/proc` has CPU time, memory and children. */
export const linux: Need = {
  missing: async () => (process.platform === "linux" ? undefined : "it reads /proc, which only Linux has"),
};

let confinementMissing: Promise<string | undefined> | undefined;

/** This host can confine processes, which is shown by opening a sandbox. */
export const confinement: Need = {
  missing: () => {
    confinementMissing ??= openBackend({ network: "own", limited: false })
      .then(async ({ close }) => {
        await close();
        return undefined;
      })
      .catch((error: unknown) => `this host can't confine: ${messageOf(error)}`);
    return confinementMissing;
  },
};

/** The interpreter's own path: a version manager's shim on the PATH takes eight times as long. */
export const systemPython = "/usr/bin/python3";

export const python: Need = {
  missing: async () => (existsSync(systemPython) ? undefined : `there is no ${systemPython}`),
};

/** The address of this machine's name, if it is a loopback address: a name that a jail resolves through the proxy. */
export async function ownLoopback(): Promise<
  { readonly name: string; readonly address: string } | undefined
> {
  const name = hostname().toLowerCase();
  if (name === "localhost") return undefined;
  try {
    const { address } = await lookup(name, { family: 4 });
    return address.startsWith("127.") ? { name, address } : undefined;
  } catch {
    // The name doesn't resolve.
    return undefined;
  }
}

const agentPackages: Readonly<Record<RealAgent, string>> = {
  codex: "@agentclientprotocol/codex-acp",
  gemini: "@google/gemini-cli",
  pi: "pi-acp",
};

/** Agents that every test run has installed. */
export const installedAgents: Need = {
  missing: async () => {
    const missing = realAgents.filter(
      (id) => !existsSync(join(agentsFolder, "node_modules", agentPackages[id])),
    );
    return missing.length === 0 ? undefined : `not installed: ${missing.join(", ")}: npm run setup`;
  },
};
