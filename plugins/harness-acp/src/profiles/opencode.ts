import { join } from "node:path/posix";
import type { FileEntry, JsonObject } from "@ambit/core/plugin";
import type { Preparation, Prepared, Profile, ToolCallView, ToolIdentity } from "./profile.js";
import { openai, providerOf, withVersion } from "./providers.js";
import { publishedTool } from "./tool-names.js";

/** OpenCode (1.18), with Anthropic, OpenAI, Google, or any endpoint that speaks Chat Completions. */
export const opencode: Profile = {
  id: "opencode",
  title: "OpenCode",
  aliases: [],
  program: {
    package: "opencode-ai",
    bin: "opencode",
    inImage: "installed",
    // What its package has as `bin` is put in place by an install script, which isn't run.
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
    // The workspace's own configuration could loosen the permissions below, by an agent or a plugin of its own.
    OPENCODE_DISABLE_PROJECT_CONFIG: "1",
  },
  model: openai,
  modelFor: providerOf,
  instructions: { agentsFile: "AGENTS.md", systemPrompt: true, appendSystemPrompt: true, modes: [] },
  supportsPermissionRequests: true,
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
    asksBeforeInput: true,
    failureMeta: [],
  },
  prepare,
  permissionCall,
  identify,
};

function prepare({ request, home, model, endpoint }: Preparation): Prepared {
  const { default: mode } = request.permissions;
  const provider = providerOf(request);
  const { npm, credentials, version } = provider;
  const baseUrl = endpoint.baseUrl;
  // Its own OpenAI provider speaks Responses, which few other endpoints do.
  const id = baseUrl !== undefined && provider.id === "openai" ? "ambit" : provider.id;
  const keyless = request.modelConnection?.credentialMode === "none" && endpoint.key === undefined;
  const files: FileEntry[] = [];
  const instructions: string[] = [];
  // With the workspace's configuration it leaves out its AGENTS.md as well.
  const agentsMd = request.agentsMd ?? request.harnessFiles.find(({ path }) => path === "AGENTS.md")?.content;
  if (agentsMd !== undefined) {
    const path = join(home, ".config/opencode/ambit-agents.md");
    files.push({ path, content: agentsMd });
    instructions.push(path);
  }
  if (request.appendSystemPrompt !== undefined) {
    const path = join(home, ".config/opencode/ambit-append.md");
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
        models: baseUrl === undefined ? {} : { [model]: withImages },
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
    environment: { OPENCODE_CONFIG_CONTENT: JSON.stringify(config) },
  };
}

/** Of a model that it doesn't know: otherwise it leaves images out. */
const withImages = { attachment: true, modalities: { input: ["text", "image"], output: ["text"] } };

/** Everything asks; its subagents, whose tools answer to other rules, and its questions to a user are off. */
function permission(mode: string): object {
  const notes = mode === "allow" || mode === "allow_reads" ? "allow" : "deny";
  return {
    "*": "ask",
    todowrite: notes,
    // Asked beside the tool's own question; what lies outside the workspace is the boundary's matter.
    external_directory: "allow",
    task: "deny",
    question: "deny",
    plan_enter: "deny",
    plan_exit: "deny",
    // A loop is for the run's limits to end.
    doom_loop: "allow",
  };
}

/** A question's title is what the tool is to act on, which the model chooses; the call's own is the tool's name. */
function permissionCall({ title: _subject, ...toolCall }: JsonObject): JsonObject {
  return toolCall;
}

/** A title counts as a tool's name only where the call's kind, which the model doesn't choose, is that tool's. */
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
