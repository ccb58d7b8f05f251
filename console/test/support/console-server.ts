import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AmbitClient, type RunRequest } from "@ambit/client";
import { type ConfigurationInput, openAmbit, startServer, takeEnvironment } from "ambit";
import { buildPage } from "./built-page.js";

/** A token that is long enough for any address. */
export const operatorToken = randomUUID();

export interface ConsoleServer {
  readonly url: string;
  /** As the operator. */
  readonly client: AmbitClient;
  /** The URL of a link that signs in once. */
  link(role?: "viewer" | "answerer" | "operator", user?: string): Promise<string>;
  /** Ends, and begins again at the same address with the same store. */
  restart(betweenStarts?: () => Promise<void>): Promise<void>;
  close(): Promise<void>;
}

/** A real server with the console, the demo agent and a store of its own. */
export async function startConsoleServer(configuration: ConfigurationInput = {}): Promise<ConsoleServer> {
  buildPage();
  const folder = await mkdtemp(join(tmpdir(), "ambit-console-test-"));
  process.env.AMBIT_SQLITE_FILE = join(folder, "runs.sqlite");
  process.env.XDG_CACHE_HOME = join(folder, "cache");
  const start = async (port: number) => {
    const environment = takeEnvironment({ AMBIT_PORT: String(port), AMBIT_TOKEN: operatorToken });
    const server = { console: true, drainMs: 0, ...configuration.server };
    const ambit = await openAmbit({
      environment,
      configuration: { ...configuration, server },
      logLevel: "silent",
    });
    return await startServer(ambit);
  };
  let server = await start(0);
  const { url } = server;
  const client = new AmbitClient({ url, token: operatorToken });
  return {
    url,
    client,
    link: (role, user) => client.signInLink({ role, user }),
    restart: async (betweenStarts = async () => {}) => {
      await server.close();
      await betweenStarts();
      server = await start(Number(new URL(url).port));
    },
    close: async () => {
      await server.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export const boundary = { network: "off", filesystem: "workspace" } as const;

/** A request to the demo agent, which follows the lines of its prompt. */
export function demo(lines: readonly string[], further: Partial<RunRequest> = {}): RunRequest {
  return {
    harness: "demo",
    permissions: { default: "allow" },
    messages: [{ role: "user", content: lines.join("\n") }],
    ...further,
  };
}
