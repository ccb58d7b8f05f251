import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { demoAgentEntry } from "@ambit/agent-demo";
import type { Subject } from "./driver-messages.js";

/** The minimal way to start an agent by hand. */
export interface AgentLaunch {
  readonly arguments: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** For `session/new`. */
  readonly sessionMeta?: Readonly<Record<string, unknown>>;
  /** The agent accepts no MCP server and gets its tools another way. */
  readonly hasTools?: true;
}

/** The repository's root, where npm installs the agents. */
export const agentsFolder = fileURLToPath(new URL("../../..", import.meta.url));
const installed = (...path: string[]) => join(agentsFolder, "node_modules", ...path);

export const benchKey = "key-of-the-bench";

/**
 * Writes an agent's configuration into its home, and returns its start command. `toolUrl`: the address that its tool
 * posts calls to.
 */
export function launchOf(
  subject: Subject | undefined,
  home: string,
  toolUrl: string | undefined,
): AgentLaunch {
  switch (subject?.agent) {
    case "codex":
      return codex(subject.modelUrl, home);
    case "gemini":
      return gemini(subject.modelUrl, home);
    case "pi":
      return pi(subject.modelUrl, home, toolUrl);
    case undefined:
      return { arguments: [demoAgentEntry], environment: {} };
  }
}

function codex(modelUrl: string, home: string): AgentLaunch {
  const folder = join(home, ".codex");
  const provider = {
    name: "bench",
    base_url: `${modelUrl}/v1`,
    wire_api: "responses",
    env_key: "OPENAI_API_KEY",
    request_max_retries: 1,
    stream_max_retries: 1,
    supports_websockets: false,
  };
  const lines = Object.entries(provider).map(([name, value]) => `${name} = ${JSON.stringify(value)}`);
  const config = `model = "scripted-model"
model_provider = "bench"
check_for_update_on_startup = false
[analytics]
enabled = false
[feedback]
enabled = false
[model_providers.bench]
${lines.join("\n")}
`;
  put(join(folder, "config.toml"), config);
  return {
    arguments: [installed("@agentclientprotocol/codex-acp/dist/index.js")],
    environment: {
      CODEX_HOME: folder,
      OPENAI_API_KEY: benchKey,
      NO_BROWSER: "1",
      INITIAL_AGENT_MODE: "agent-full-access",
    },
    sessionMeta: { mcpStartupAwaitTimeoutMs: 15_000 },
  };
}

function gemini(modelUrl: string, home: string): AgentLaunch {
  const settings = {
    model: { name: "gemini-2.5-flash" },
    security: { auth: { selectedType: "gemini-api-key" }, folderTrust: { enabled: false } },
    general: { maxAttempts: 1, enableAutoUpdate: false },
    privacy: { usageStatisticsEnabled: false },
    telemetry: { enabled: false },
  };
  put(join(home, ".gemini/settings.json"), JSON.stringify(settings));
  return {
    arguments: [installed("@google/gemini-cli/bundle/gemini.js"), "--acp"],
    environment: {
      GEMINI_API_KEY: benchKey,
      GOOGLE_GEMINI_BASE_URL: modelUrl,
      GEMINI_CLI_NO_RELAUNCH: "true",
    },
  };
}

function pi(modelUrl: string, home: string, toolUrl: string | undefined): AgentLaunch {
  const folder = join(home, ".pi/agent");
  const command = join(home, "pi");
  const extension = join(home, "extension.js");
  const models = [{ id: "scripted-model", input: ["text"] }];
  const provider = { baseUrl: `${modelUrl}/v1`, api: "openai-completions", apiKey: benchKey, models };
  const settings = {
    defaultProvider: "bench",
    defaultModel: "scripted-model",
    defaultProjectTrust: "never",
    quietStartup: true,
    enableInstallTelemetry: false,
    retry: { enabled: false },
  };
  put(join(folder, "models.json"), JSON.stringify({ providers: { bench: provider } }));
  put(join(folder, "settings.json"), JSON.stringify(settings));
  if (toolUrl !== undefined) put(extension, posting(toolUrl));
  const cli = installed("@earendil-works/pi-coding-agent/dist/bundle/cli.js");
  const given = toolUrl === undefined ? "--no-extensions" : `--no-extensions --extension '${extension}'`;
  put(command, `#!/bin/sh\nexec '${process.execPath}' '${cli}' ${given} --no-approve "$@"\n`);
  chmodSync(command, 0o755);
  return {
    arguments: [installed("pi-acp/dist/index.js")],
    environment: {
      PI_ACP_PI_COMMAND: command,
      PI_OFFLINE: "1",
      PI_SKIP_VERSION_CHECK: "1",
      PI_TELEMETRY: "0",
    },
    hasTools: true,
  };
}

/** An extension of Pi with one tool, which posts its calls itself. */
function posting(toolUrl: string): string {
  return `export default (pi) => pi.registerTool({
  name: "crm_search_contacts_0",
  label: "crm_search_contacts_0",
  description: "Searches.",
  parameters: { type: "object", properties: {} },
  async execute(id, input) {
    const call = { name: "crm_search_contacts_0", arguments: input };
    const body = JSON.stringify({ data: { id, type: "function", function: call } });
    const answer = await fetch(${JSON.stringify(toolUrl)}, { method: "POST", body });
    return { content: [{ type: "text", text: await answer.text() }], details: undefined };
  },
});
`;
}

function put(path: string, content: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}
