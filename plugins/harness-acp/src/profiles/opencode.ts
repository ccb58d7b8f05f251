import { join } from "node:path/posix";
import type { FileEntry, JsonObject } from "@ambit/core/plugin";
import type { Preparation, PreparedProfile, Profile, ToolCallView, ToolIdentity } from "./profile.js";
import { openai, providerOf, withVersion } from "./providers.js";
import { publishedTool } from "./tool-names.js";

/** Texts of a configuration with plugins. Escapes and substitutions could hide the word. */
const pluginNames = ["plugin", "\\", "{file:", "{env:"] as const;

/** OpenCode (1.18), with Anthropic, OpenAI, Google, or any endpoint with the Chat Completions API. */
export const opencode: Profile = {
  id: "opencode",
  title: "OpenCode",
  aliases: [],
  program: {
    package: "opencode-ai",
    bin: "opencode",
    inImage: "mounted",
    // An install script, which isn't run, would put the `bin` of its package in place.
    native: {
      packages: (platform, architecture) => {
        const name = `opencode-${platform}-${architecture}`;
        return [`${name}-baseline`, name];
      },
      file: "bin/opencode",
    },
  },
  arguments: ["acp"],
  environment: {
    OPENCODE_DISABLE_AUTOUPDATE: "1",
    OPENCODE_DISABLE_MODELS_FETCH: "1",
    OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
    OPENCODE_DISABLE_SHARE: "1",
    OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
    OPENCODE_DISABLE_TERMINAL_TITLE: "1",
    // The workspace's own configuration could loosen the permissions below, through a custom agent or plugin.
    OPENCODE_DISABLE_PROJECT_CONFIG: "1",
  },
  model: openai,
  modelFor: providerOf,
  instructions: { agentsFile: "AGENTS.md", systemPrompt: true, appendSystemPrompt: true, modes: [] },
  reasoning: {
    efforts: { none: "none", minimal: "minimal", low: "low", medium: "medium", high: "high", xhigh: "xhigh" },
    by: "session",
  },
  supportsPermissionRequests: true,
  // It imports the plugins of a workspace, although its configuration is off.
  obeys: [
    { path: ".opencode/plugin" },
    { path: ".opencode/plugins" },
    ...["opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"].map(
      (path) => ({ path, what: "plugins", naming: pluginNames }),
    ),
  ],
  ownTools: {
    bash: "shell",
    edit: "edit",
    write: "edit",
    apply_patch: "edit",
    read: "read",
    glob: "read",
    grep: "read",
    list: "read",
    webfetch: "fetch",
    websearch: "fetch",
    skill: "other",
    todowrite: "other",
  },
  maxToolCallMs: 3_600_000,
  clientCapabilities: {},
  // Its usage is that of the turn's last model call.
  reports: { reasoning: true, plans: true, usage: false },
  quirks: {
    savesBeforeAnswering: true,
    promptsBeforeTools: false,
    replaysLate: false,
    staysInOrder: false,
    asksBeforeInput: true,
    failureMeta: [],
  },
  prepare,
  permissionCall,
  identify,
};

function prepare({ request, fresh, model, effort, endpoint }: Preparation): PreparedProfile {
  const { default: mode } = request.permissions;
  const provider = providerOf(request);
  const { npm, credentials, version } = provider;
  const baseUrl = endpoint.baseUrl ?? (provider.isGeneric ? provider.endpoint.url : undefined);
  // Its own OpenAI provider uses the Responses API, which few other endpoints have.
  const isOther = provider.isGeneric || provider.id === "openai";
  const id = baseUrl !== undefined && isOther ? "ambit" : provider.id;
  const keyless = request.modelConnection?.credentialMode === "none" && endpoint.key === undefined;
  const files: FileEntry[] = [];
  const instructions: string[] = [];
  // Without the workspace's configuration it also ignores the AGENTS.md there.
  const agentsMd = request.agentsMd ?? request.harnessFiles.find(({ path }) => path === "AGENTS.md")?.content;
  if (agentsMd !== undefined) {
    const path = join(fresh, "ambit-agents.md");
    files.push({ path, content: agentsMd });
    instructions.push(path);
  }
  if (request.appendSystemPrompt !== undefined) {
    const path = join(fresh, "ambit-append.md");
    files.push({ path, content: request.appendSystemPrompt });
    instructions.push(path);
  }
  const config = {
    autoupdate: false,
    share: "disabled",
    model: `${id}/${model}`,
    small_model: `${id}/${model}`,
    enabled_providers: [id],
    provider: {
      [id]: {
        ...(baseUrl === undefined ? {} : { npm }),
        options: {
          ...(baseUrl === undefined ? {} : { baseURL: withVersion(baseUrl, version) }),
          apiKey: keyless ? "none" : `{env:${credentials[0]}}`,
        },
        models: baseUrl === undefined ? {} : { [model]: { ...withImages, reasoning: effort !== undefined } },
      },
    },
    instructions,
    agent: {
      build: {
        ...(request.systemPrompt === undefined ? {} : { prompt: request.systemPrompt }),
        permission: permission(mode),
      },
    },
    default_agent: "build",
    permission: permission(mode),
    experimental: { continue_loop_on_deny: true, mcp_timeout: 3_600_000 },
  };
  return {
    files,
    environment: {
      OPENCODE_CONFIG_CONTENT: JSON.stringify(config),
      // It would load plugins, tools and servers that an earlier turn left in the home.
      XDG_CONFIG_HOME: join(fresh, "config"),
      OPENCODE_TEST_HOME: fresh,
    },
  };
}

/** Settings of a model that it doesn't know: otherwise it leaves images out. */
const withImages = { attachment: true, modalities: { input: ["text", "image"], output: ["text"] } };

/** Every tool asks. Its subagents, whose tools follow other rules, and its questions to a user are off. */
function permission(mode: string): object {
  const notes = mode === "allow" || mode === "allow_reads" ? "allow" : "deny";
  return {
    "*": "ask",
    todowrite: notes,
    // Asked in addition to the tool's own question; paths outside the workspace are up to the boundary.
    external_directory: "allow",
    task: "deny",
    question: "deny",
    plan_enter: "deny",
    plan_exit: "deny",
    // The run's limits end a loop.
    doom_loop: "allow",
  };
}

/** A question's title is the target of the tool, which the model chooses; the call's own title is the tool's name. */
function permissionCall({ title: _subject, ...toolCall }: JsonObject): JsonObject {
  return toolCall;
}

/** A title counts as a tool's name only if it matches the call's kind, which the model doesn't choose. */
function identify({ kind = "", title = "tool" }: ToolCallView, servers: readonly string[]): ToolIdentity {
  if (kind === "other") {
    const published = publishedTool(title, ["{server}_{tool}"], servers);
    if (published !== undefined) return published;
  }
  const [usual] = toolsByKind[kind] ?? [title];
  return { name: toolsByKind[kind]?.includes(title) ? title : usual };
}

const toolsByKind: Readonly<Record<string, readonly [string, ...string[]]>> = {
  execute: ["bash"],
  edit: ["edit", "write", "apply_patch"],
  read: ["read", "list"],
  search: ["grep", "glob", "list"],
  fetch: ["webfetch", "websearch"],
};
