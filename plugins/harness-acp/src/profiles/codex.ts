import { join } from "node:path/posix";
import { type FileEntry, type JsonObject, normaliseBoundary } from "@ambit/core/plugin";
import { z } from "zod";
import type { Preparation, PreparedProfile, Profile, ToolCallView, ToolIdentity } from "./profile.js";

/** Time limit for one call of a published tool. */
const toolTimeoutSeconds = 3_600;

const credentialNames = ["OPENAI_API_KEY", "CODEX_API_KEY"] as const;

const targets: Readonly<Record<string, string>> = {
  "linux-x64": "x86_64-unknown-linux-musl",
  "linux-arm64": "aarch64-unknown-linux-musl",
  "darwin-x64": "x86_64-apple-darwin",
  "darwin-arm64": "aarch64-apple-darwin",
};

/** OpenAI's Codex (0.171) by its ACP adapter (`@agentclientprotocol/codex-acp` 2.6) with an API key. */
export const codex: Profile = {
  id: "codex",
  title: "Codex",
  aliases: [],
  program: {
    package: "@agentclientprotocol/codex-acp",
    bin: "codex-acp",
    adapts: "@openai/codex",
    inImage: "mounted",
    binary: (platform, architecture) => {
      const target = targets[`${platform}-${architecture}`];
      if (target === undefined) return undefined;
      const packages = ["@openai/codex", `@openai/codex-${platform}-${architecture}`];
      return { packages, file: `vendor/${target}/bin/codex` };
    },
  },
  arguments: [],
  environment: { NO_BROWSER: "1" },
  model: {
    providers: ["openai", "openai-codex"],
    credentials: credentialNames,
    defaultModel: "gpt-5.5",
    // It lists the models that its version knows; its provider refuses unknown ones.
    isKnown: () => true,
    endpoint: { url: "https://api.openai.com/v1", variables: ["OPENAI_BASE_URL"] },
    // It asks a second model for the conversation's title.
    route: { protocol: "openai", auxiliaryModels: ["gpt-*-mini", "gpt-*-nano", "gpt-*-luna"] },
  },
  instructions: {
    agentsFile: "AGENTS.md",
    systemPrompt: true,
    appendSystemPrompt: true,
    modes: ["read-only", "workspace-write", "agent", "agent-full-access"],
  },
  reasoning: {
    efforts: { none: "none", minimal: "minimal", low: "low", medium: "medium", high: "high", xhigh: "xhigh" },
    by: "prepared",
  },
  // `tool_timeout_sec`, set below for every server.
  supportsPermissionRequests: false,
  ownTools: {
    shell: "shell",
    apply_patch: "edit",
    view_image: "read",
    web_search: "fetch",
    update_plan: "other",
  },
  maxToolCallMs: toolTimeoutSeconds * 1_000,
  clientCapabilities: {
    // With this its warnings arrive as notices; otherwise they begin the assistant's text.
    session: { notices: {} },
    _meta: {
      // With this a failure arrives with the turn's response; otherwise it ends the assistant's text.
      jetbrains: { air: { version: 1, capabilities: ["sessionFailure"] } },
      // To a client with the above, it sends the output of commands only if this is set too.
      terminal_output_delta: true,
    },
  },
  // Without it the turn begins after a second, whether or not the tools are available.
  sessionMeta: { mcpStartupAwaitTimeoutMs: 15_000 },
  reports: { reasoning: true, plans: true, usage: true },
  // Node.js, the script around its program, the program, and the filter of its output.
  ahead: { processes: 4, home: [".codex"], notifications: ["_auth/status_update"] },
  quirks: {
    savesBeforeAnswering: false,
    promptsBeforeTools: false,
    replaysLate: false,
    staysInOrder: true,
    failureMeta: [{ path: ["codex", "threadStatus", "type"], failed: "systemError" }],
  },
  failure,
  prepare,
  identify,
};

const failureSchema = z.object({
  _meta: z.object({
    jetbrains: z.object({
      air: z.object({ sessionFailure: z.object({ severity: z.literal("error"), title: z.string() }) }),
    }),
  }),
});

function failure(response: JsonObject): string | undefined {
  return failureSchema.safeParse(response).data?._meta.jetbrains.air.sessionFailure.title;
}

function prepare(preparation: Preparation): PreparedProfile {
  const { request, home, model, effort, endpoint, servers, companion } = preparation;
  const folder = join(home, ".codex");
  const connection = request.modelConnection;
  const baseUrl = endpoint.baseUrl ?? connection?.environment?.OPENAI_BASE_URL ?? "https://api.openai.com/v1";
  const named = connection?.credentials.map(({ binding }) => binding.name) ?? [];
  // A model gateway's key is set under the first of these names.
  const credential =
    endpoint.key === undefined ? credentialNames.find((name) => named.includes(name)) : undefined;
  const key = credential ?? credentialNames[0];
  const hasKey = endpoint.key !== undefined || connection?.credentialMode !== "none";
  const isRestricted = normaliseBoundary(request.sandboxPermission).boundary.network.mode !== "on";
  const files: FileEntry[] = [];
  const top: Record<string, string | boolean> = {
    model,
    ...(effort === undefined ? {} : { model_reasoning_effort: effort }),
    model_provider: "ambit",
    check_for_update_on_startup: false,
    // Its shell would read the startup files of the home.
    allow_login_shell: false,
    // The provider runs it, outside the boundary: the model route refuses a request that offers it.
    ...(isRestricted ? { web_search: "disabled" } : {}),
  };
  if (request.systemPrompt !== undefined) {
    const path = join(folder, "ambit-system.md");
    files.push({ path, content: request.systemPrompt });
    top.model_instructions_file = path;
  }
  if (request.appendSystemPrompt !== undefined) top.developer_instructions = request.appendSystemPrompt;
  const config = [
    ...table(undefined, top),
    ...table("analytics", { enabled: false }),
    ...table("feedback", { enabled: false }),
    // At each start these request lists from other hosts, and run a dozen programs to record the user's shell.
    ...table("features", {
      apps: false,
      plugins: false,
      plugin_discovery_prefetch: false,
      shell_snapshot: false,
      // If nothing answers, it would retry without limit.
      unbounded_connection_retries: false,
    }),
    // By default its commands don't get variables whose names say KEY, SECRET or TOKEN.
    ...(request.sandboxCredentials !== undefined
      ? table("shell_environment_policy", { inherit: "all", ignore_default_excludes: true })
      : []),
    ...table("model_providers.ambit", {
      name: "Ambit",
      base_url: baseUrl,
      wire_api: "responses",
      ...(hasKey ? { env_key: key } : {}),
      request_max_retries: 1,
      stream_max_retries: 1,
      supports_websockets: false,
    }),
  ];
  files.push({ path: join(folder, "config.toml"), content: `${config.join("\n")}\n` });
  const mode = request.harnessMode;
  let [binary] = companion ?? [];
  if (binary !== undefined) {
    const path = join(folder, "ambit-codex");
    files.push({ path, content: starter(binary, servers.length > 0), executable: true });
    binary = path;
  }
  return {
    files,
    environment: {
      CODEX_HOME: folder,
      ...(binary === undefined ? {} : { CODEX_PATH: binary }),
      // Its own sandbox can't be created inside a jail, and its reviewer would be a second model: the boundary
      // confines, the run's permissions decide.
      INITIAL_AGENT_MODE: mode === undefined || mode === "" ? "agent-full-access" : mode,
      CODEX_CONFIG: JSON.stringify({
        mcp_servers: Object.fromEntries(
          servers.map(({ name }) => [name, { tool_timeout_sec: toolTimeoutSeconds }]),
        ),
      }),
    },
  };
}

/**
 * A script that starts Codex without its messages about pieces of a command's output: they lack the first piece. Only
 * where there were none does the adapter report the whole output, when the command has ended.
 *
 * @param offersTools with its own list of models, none of which searches for tools: from a model that does, it hides the
 * run's tools, and has no setting for that.
 */
function starter(binary: string, offersTools: boolean): string {
  const codex = `'${binary.replaceAll("'", "'\\''")}'`;
  const models = `models="$CODEX_HOME/ambit-models.json"
${codex} debug models --bundled 2>/dev/null |
  sed 's/"supports_search_tool":true/"supports_search_tool":false/g' > "$models"
if [ -s "$models" ]; then set -- -c "model_catalog_json='$models'" "$@"; fi
`;
  return `#!/bin/sh
${offersTools ? models : ""}${codex} "$@" | exec sed -u '/^{"method":"item\\/commandExecution\\/outputDelta"/d'
`;
}

/** A table of TOML, or without a name the document's first entries. */
function table(
  name: string | undefined,
  entries: Readonly<Record<string, string | number | boolean>>,
): string[] {
  const lines = Object.entries(entries).map(([key, value]) => `${key} = ${toml(value)}`);
  return name === undefined ? lines : [`[${name}]`, ...lines];
}

/** The input of a call to an MCP server. A shell command has another format, and a title with any text. */
const mcpInput = z.object({ server: z.string(), tool: z.string(), arguments: z.unknown().optional() });

function identify(call: ToolCallView, servers: readonly string[]): ToolIdentity {
  const mcp = mcpInput.safeParse(call.input);
  if (mcp.success && servers.includes(mcp.data.server)) {
    const { server, tool, arguments: input = {} } = mcp.data;
    return { name: tool, server, input };
  }
  return { name: nameByKind[call.kind ?? ""] ?? call.title ?? "tool" };
}

const nameByKind: Readonly<Record<string, string>> = { execute: "shell", edit: "apply_patch", read: "shell" };

/** JSON's strings, numbers and booleans are also valid TOML, except for DEL, which TOML requires to be escaped. */
function toml(value: string | number | boolean): string {
  return JSON.stringify(value).replaceAll("\u007f", "\\u007f");
}
