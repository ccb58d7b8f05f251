import { join } from "node:path/posix";
import type { FileEntry, PermissionMode } from "@ambit/core/plugin";
import type { Preparation, Prepared, Profile, ToolCallView, ToolIdentity } from "./profile.js";
import { inputInWords, publishedTool } from "./tool-names.js";

/** Google's Gemini CLI (0.61) with an API key. It sends no input of its tool calls, only words about them. */
export const gemini: Profile = {
  id: "gemini",
  title: "Gemini CLI",
  aliases: [],
  program: { package: "@google/gemini-cli", bin: "gemini", inImage: "installed" },
  arguments: ["--acp"],
  environment: {
    // Otherwise it starts itself a second time, to set its heap's size.
    GEMINI_CLI_NO_RELAUNCH: "true",
  },
  model: {
    providers: ["google", "gemini", "google-ai"],
    credentials: ["GEMINI_API_KEY"],
    // With "auto" every turn begins with a call to a router model, which retries for 85 s when it fails.
    defaultModel: "gemini-2.5-flash",
    // Its list is of what it knows now; its provider refuses what isn't there.
    isKnown: () => true,
    endpoint: {
      url: "https://generativelanguage.googleapis.com",
      variables: ["GOOGLE_GEMINI_BASE_URL"],
    },
    // What it falls back to, looks at pictures and summarises with, by itself.
    route: { protocol: "gemini", auxiliaryModels: ["gemini-*-flash*"] },
  },
  instructions: { agentsFile: "GEMINI.md", systemPrompt: true, appendSystemPrompt: true, modes: [] },
  // Its MCP client gives up after ten minutes; the first byte of an answer must come within one.
  supportsPermissionRequests: true,
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
  quirks: { savesBeforeAnswering: true, promptsBeforeTools: true, replaysLate: true, failureMeta: [] },
  prepare,
  identify,
};

/**
 * Its rules are given as an administrator's: they stand above what the workspace's and the home's settings allow,
 * which the request's files, or the agent in an earlier turn, may have written.
 */
function prepare({ request, home, model, endpoint, servers }: Preparation): Prepared {
  const folder = join(home, ".gemini");
  const own = join(folder, "ambit");
  const rules = join(own, "rules.toml");
  const files: FileEntry[] = [
    { path: join(folder, "settings.json"), content: JSON.stringify(settings(model), undefined, 2) },
    { path: rules, content: policy(request.permissions.default) },
  ];
  const environment: Record<string, string> = {};
  if (endpoint.baseUrl !== undefined) environment.GOOGLE_GEMINI_BASE_URL = endpoint.baseUrl;
  if (request.systemPrompt !== undefined) {
    const path = join(own, "system.md");
    files.push({ path, content: request.systemPrompt });
    environment.GEMINI_SYSTEM_MD = path;
  }
  if (request.appendSystemPrompt !== undefined) {
    // What this file says stands behind the system prompt, for every workspace of this home.
    files.push({ path: join(folder, "GEMINI.md"), content: request.appendSystemPrompt });
  }
  // It doesn't start without a key, also where the endpoint asks for none.
  if (endpoint.key === undefined && request.modelConnection?.credentialMode === "none")
    environment.GEMINI_API_KEY = "none";
  const allowedServers = servers.flatMap(({ name }) => ["--allowed-mcp-server-names", name]);
  return {
    files,
    environment,
    arguments: ["--admin-policy", rules, "--extensions", "none", ...allowedServers],
  };
}

function settings(model: string): object {
  return {
    model: { name: model },
    security: {
      auth: { selectedType: "gemini-api-key" },
      folderTrust: { enabled: false },
      // Answers are given once: "always" would bind calls that nobody has seen.
      disableAlwaysAllow: true,
    },
    hooksConfig: { enabled: false },
    // Of what its interactive shell shows, it passes nothing on.
    tools: { shell: { enableInteractiveShell: false } },
    // Its ten retries, with growing waits, would hide a failed model for minutes.
    general: { maxAttempts: 1, enableAutoUpdate: false, enableAutoUpdateNotification: false },
    privacy: { usageStatisticsEnabled: false },
    telemetry: { enabled: false },
  };
}

/** Its notes to itself, and looks at what it started. */
const harmless = ["update_topic", "write_todos", "list_background_processes", "read_background_output"];

/** Skills that come with the CLI: it would use them unasked, whatever the rules say. */
const builtinSkills = ["skill-creator", "antigravity-support"];

/** Its plan mode changes these very rules; of a subagent's calls it asks nobody. */
const unavailable = ["enter_plan_mode", "exit_plan_mode", "invoke_agent"];

/**
 * Every call is put to us, also of tools that the CLI would run unasked: the run's permissions decide. What would
 * need the user's leave for a mere note isn't offered to the model.
 *
 * The CLI calls some shell commands safe and runs them although a rule says to ask (`ls`, `cat`, `git status`), but
 * not where the rule has a pattern for the arguments. Any pattern does; this one matches all.
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
 * The id of a call begins with the tool's real name, whatever id the model gave: `read_file__…`. Only for an MCP
 * tool is the title its name as well; a shell command's title is the command.
 */
function identify(call: ToolCallView, servers: readonly string[]): ToolIdentity {
  const name = /^(.+?)__./s.exec(call.id)?.[1];
  if (name === undefined) return { name: nameByKind[call.kind ?? ""] ?? call.title ?? "tool" };
  if (name.startsWith("mcp_")) {
    const published =
      publishedTool(call.title, ["{tool} ({server} MCP Server)"], servers) ??
      publishedTool(name, ["mcp_{server}_{tool}"], servers);
    const input = inputInWords(call.text);
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
