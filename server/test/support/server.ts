import type { SandboxBackend } from "@ambit/core/plugin";
import { onTestFinished } from "vitest";
import { takeEnvironment } from "../../src/configuration/environment.js";
import type { ConfigurationInput } from "../../src/configuration/schema.js";
import { startServer } from "../../src/http/listen.js";
import { openAmbit } from "../../src/open.js";
import { type Script, scriptedAgent } from "./scripted-agent.js";

type PluginEntry = NonNullable<ConfigurationInput["plugins"]>[number];

/** A real server on a free port whose agent follows the script; closed with the test. */
export async function serveScript(
  script: Script,
  options: {
    readonly token?: string;
    readonly configuration?: ConfigurationInput;
    /** In addition to the agent. */
    readonly plugins?: readonly PluginEntry[];
    readonly madeConnection?: SandboxBackend["madeConnection"];
    /** Default: a free one. */
    readonly port?: string;
    /** Default: none, where the test sets no token, no tenants and no address. */
    readonly auth?: "token";
  } = {},
) {
  const { tokens, server: settings } = options.configuration ?? {};
  const isOpen = [options.auth, options.token, tokens, settings?.host].every((one) => one === undefined);
  const environment = takeEnvironment({
    AMBIT_PORT: options.port ?? "0",
    AMBIT_LOG_LEVEL: "silent",
    AMBIT_TOKEN: options.token,
    ...(isOpen ? { AMBIT_AUTH: "none" } : {}),
  });
  const configuration = {
    plugins: [scriptedAgent(script, options.madeConnection), ...(options.plugins ?? [])],
    ...options.configuration,
  };
  const ambit = await openAmbit({ environment, configuration, logLevel: "silent" });
  const server = await startServer(ambit);
  onTestFinished(() => server.close());
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    fetch(`${server.url}${path}`, {
      method: "POST",
      body: typeof body === "string" ? body : JSON.stringify(body),
      headers,
    });
  return { ...ambit, server, url: server.url, post };
}

/** A request that asks the agent for something. */
export const asking = { messages: [{ role: "user", content: "go" }] };

/** The body of an answer, as the contract says it looks. */
export async function bodyOf<Body>(response: Response): Promise<Body> {
  const body: unknown = await response.json();
  return body as Body;
}

/** The records of a text in NDJSON as lines, without the blank ones that keep a silent stream alive. */
export const linesOf = (text: string): readonly string[] => text.split("\n").filter((line) => line !== "");

/** The records of an NDJSON answer. */
export async function recordsOf(response: Response): Promise<Record<string, unknown>[]> {
  return linesOf(await response.text()).map((line) => JSON.parse(line));
}

/** Whether the runner takes another run. */
export function hasRoom(runner: { reserve(): { release(): void } }): boolean {
  try {
    runner.reserve().release();
    return true;
  } catch {
    // At capacity still: the poll asks again.
    return false;
  }
}
