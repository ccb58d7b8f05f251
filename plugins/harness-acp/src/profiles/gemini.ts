import { join } from "node:path/posix";
import type { FileEntry, PermissionMode } from "@ambit/core/plugin";
import type { Preparation, PreparedProfile, Profile, ToolCallView, ToolIdentity } from "./profile.js";
import { inputInWords, publishedTool } from "./tool-names.js";

/** Texts of settings that act, or a backslash that may hide one. */
const overriding: readonly [string, ...string[]] = [
  ...(["\\", "Command", "mcp", "hook", "andbox", "pager", "ecurity", "advanced"] as const),
  "experimental",
  "gemma",
  "admin",
  "agent",
  "extension",
];

/** Google's Gemini CLI (0.61) with an API key. It sends no input of its tool calls, only a description. */
export const gemini: Profile = {
  id: "gemini",
  title: "Gemini CLI",
  aliases: [],
  program: { package: "@google/gemini-cli", bin: "gemini", inImage: "mounted" },
  arguments: ["--acp"],
  environment: {
    // Otherwise it starts itself a second time, to set its heap's size.
    GEMINI_CLI_NO_RELAUNCH: "true",
  },
  model: {
    providers: ["google", "gemini", "google-ai"],
    credentials: ["GEMINI_API_KEY"],
    // With "auto" every turn begins with a call to a router model, which retries for 85 s if it fails.
    defaultModel: "gemini-2.5-flash",
    // It lists the models that its version knows; its provider refuses unknown ones.
    isKnown: () => true,
    endpoint: {
      url: "https://generativelanguage.googleapis.com",
      variables: ["GOOGLE_GEMINI_BASE_URL"],
      excludes: "/v1beta",
    },
    // Models that it uses by itself for fallbacks, images and summaries.
    route: { protocol: "gemini", auxiliaryModels: ["gemini-*-flash*"] },
  },
  instructions: { agentsFile: "GEMINI.md", systemPrompt: true, appendSystemPrompt: true, modes: [] },
  reasoning: {
    efforts: { none: "none", minimal: "minimal", low: "low", medium: "medium", high: "high" },
    by: "prepared",
  },
  // Its MCP client times out after ten minutes, and after one minute without the first byte of a response.
  supportsPermissionRequests: true,
  obeys: [
    // Its variables, among them those of the shell and of the linker, become the agent's.
    { path: ".gemini/.env" },
    // It overrides the settings below. An administrator's file would be above both, but must belong to root.
    {
      path: ".gemini/settings.json",
      what: "settings that start programs or override its own",
      naming: overriding,
    },
  ],
  ownTools: {
    run_shell_command: "shell",
    write_file: "edit",
    replace: "edit",
    read_file: "read",
    list_directory: "read",
    glob: "read",
    grep_search: "read",
    web_fetch: "fetch",
    google_web_search: "fetch",
    activate_skill: "other",
    update_topic: "other",
    write_todos: "other",
    list_background_processes: "other",
    read_background_output: "other",
  },
  maxToolCallMs: 540_000,
  clientCapabilities: {},
  reports: { reasoning: true, plans: false, usage: true },
  quirks: {
    savesBeforeAnswering: true,
    promptsBeforeTools: true,
    replaysLate: true,
    staysInOrder: true,
    failureMeta: [],
  },
  // It reads its settings again with its conversation.
  ahead: { processes: 1, home: [".gemini"], notifications: [] },
  prepare,
  identify,
};

/**
 * Its rules are given as an administrator's: they take precedence over the settings of the workspace and the home,
 * which the request's files, or the agent in an earlier turn, may have written.
 */
function prepare(preparation: Preparation): PreparedProfile {
  const { request, home, endpoint, servers } = preparation;
  const folder = join(home, ".gemini");
  const own = join(folder, "ambit");
  const rules = join(own, "rules.toml");
  const files: FileEntry[] = [
    { path: join(folder, "settings.json"), content: JSON.stringify(settings(preparation), undefined, 2) },
    { path: rules, content: policy(request.permissions.default) },
    // What an earlier turn may have left where it looks for variables and instructions.
    { path: join(folder, ".env"), content: "" },
    { path: join(home, ".env"), content: "" },
    // The content of this file follows the system prompt, for every workspace of this home.
    { path: join(folder, "GEMINI.md"), content: request.appendSystemPrompt ?? "" },
  ];
  const environment: Record<string, string> = {};
  if (endpoint.baseUrl !== undefined) environment.GOOGLE_GEMINI_BASE_URL = endpoint.baseUrl;
  if (request.systemPrompt !== undefined) {
    const path = join(own, "system.md");
    files.push({ path, content: request.systemPrompt });
    environment.GEMINI_SYSTEM_MD = path;
  }
  // It doesn't start without a key, even if the endpoint needs none.
  if (endpoint.key === undefined && request.modelConnection?.credentialMode === "none")
    environment.GEMINI_API_KEY = "none";
  const allowedServers = servers.flatMap(({ name }) => ["--allowed-mcp-server-names", name]);
  return {
    files,
    environment,
    arguments: ["--admin-policy", rules, "--extensions", "none", ...allowedServers],
  };
}

function settings({ model, effort, servers }: Preparation): object {
  return {
    model: { name: model },
    ...(effort === undefined ? {} : { modelConfigs: { customOverrides: [thinking(model, effort)] } }),
    mcp: { allowed: servers.map(({ name }) => name) },
    // A workspace's `.env` is its program's, not the agent's.
    advanced: { ignoreLocalEnv: true },
    security: {
      auth: { selectedType: "gemini-api-key" },
      folderTrust: { enabled: false },
      // Permissions are given for one call: "always" would cover calls that no user has seen.
      disableAlwaysAllow: true,
    },
    hooksConfig: { enabled: false },
    // It passes on nothing of the output of its interactive shell.
    tools: { shell: { enableInteractiveShell: false }, discoveryCommand: "", callCommand: "" },
    // Its ten retries, with growing waits, would hide a failed model for minutes.
    general: { maxAttempts: 1, enableAutoUpdate: false, enableAutoUpdateNotification: false },
    privacy: { usageStatisticsEnabled: false },
    telemetry: { enabled: false },
  };
}

/** Thinking budgets, as Google's OpenAI-compatible API has them for the efforts of the models before Gemini 3. */
const budgets: Readonly<Record<string, number>> = {
  none: 0,
  minimal: 1_024,
  low: 1_024,
  medium: 8_192,
  high: 24_576,
};

function thinking(model: string, effort: string): object {
  const hasBudget = effort === "none" || /^gemini-[12]\D/.test(model);
  const thinkingConfig = hasBudget
    ? { thinkingBudget: budgets[effort] }
    : { thinkingLevel: effort.toUpperCase() };
  return { match: { model }, modelConfig: { generateContentConfig: { thinkingConfig } } };
}

/** Tools for its own notes, and for the state of what it started. */
const harmless = ["update_topic", "write_todos", "list_background_processes", "read_background_output"];

/** Skills that come with the CLI: it would use them unasked, whatever the rules are. */
const builtinSkills = ["skill-creator", "antigravity-support"];

/** Its plan mode changes these very rules; it doesn't ask before a subagent's calls. */
const unavailable = ["enter_plan_mode", "exit_plan_mode", "invoke_agent"];

/**
 * Every call is put to the runner, including tools that the CLI would run unasked: the run's permissions decide. Tools
 * that would need the user's permission for a mere note aren't offered to the model.
 *
 * The CLI considers some shell commands safe and runs them although a rule says to ask (`ls`, `cat`, `git status`),
 * except if the rule has a pattern for the arguments. Any pattern will do; this one matches everything.
 */
function policy(mode: PermissionMode): string {
  const denied = mode === "ask" || mode === "deny" ? [...unavailable, ...harmless] : unavailable;
  return `[[rule]]
toolName = "*"
decision = "ask_user"
priority = 1

[[rule]]
toolName = "*"
argsPattern = "."
decision = "ask_user"
priority = 2

[[rule]]
toolName = ${JSON.stringify(denied)}
decision = "deny"
priority = 3

[[rule]]
toolName = "activate_skill"
argsPattern = ${JSON.stringify(`"name":"(${builtinSkills.join("|")})"`)}
decision = "deny"
priority = 3
`;
}

/**
 * The id of a call begins with the tool's real name, whatever id the model gave: `read_file__…`. Only for an MCP tool
 * is the title its name too; a shell command's title is the command.
 */
function identify(call: ToolCallView, servers: readonly string[]): ToolIdentity {
  const name = /^(.+?)__./s.exec(call.id)?.[1];
  if (name === undefined) return { name: nameByKind[call.kind ?? ""] ?? call.title ?? "tool" };
  if (name.startsWith("mcp_")) {
    const published =
      publishedTool(call.title, ["{tool} ({server} MCP Server)"], servers) ??
      publishedTool(name, ["mcp_{server}_{tool}"], servers);
    const input = inputInWords(call);
    if (published !== undefined) return input === undefined ? published : { ...published, input };
  }
  if (name === "run_shell_command" && call.title !== undefined)
    return { name, input: { command: call.title } };
  const readOnly = harmless.includes(name) ? { readOnly: true } : {};
  return call.path === undefined
    ? { name, ...readOnly }
    : { name, input: { file_path: call.path }, ...readOnly };
}

const nameByKind: Readonly<Record<string, string>> = {
  execute: "run_shell_command",
  edit: "write_file",
  read: "read_file",
  search: "grep_search",
  fetch: "web_fetch",
};
