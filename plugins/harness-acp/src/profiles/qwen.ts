import { join } from "node:path/posix";
import type { FileEntry } from "@ambit/core/plugin";
import type { Preparation, PreparedProfile, Profile, ToolCallView, ToolIdentity } from "./profile.js";
import { inputInWords, publishedTool } from "./tool-names.js";

const defaultUrl = "https://dashscope.aliyuncs.com/compatible-mode/v1";

/** Qwen Code (0.24), with any endpoint that has OpenAI's Chat Completions API. */
export const qwen: Profile = {
  id: "qwen",
  title: "Qwen Code",
  aliases: ["qwen_code"],
  program: { package: "@qwen-code/qwen-code", bin: "qwen", inImage: "mounted" },
  arguments: ["--acp"],
  environment: {
    // Otherwise it starts itself a second time, to set its heap's size.
    QWEN_CODE_NO_RELAUNCH: "true",
    // With this it has its tools before the first prompt, and not some time later.
    QWEN_CODE_LEGACY_MCP_BLOCKING: "1",
    QWEN_CODE_DISABLE_CRON: "1",
    QWEN_CODE_DISABLE_WORKFLOWS: "1",
  },
  model: {
    providers: ["openai", "qwen", "dashscope"],
    credentials: ["OPENAI_API_KEY"],
    defaultModel: "qwen3-coder-plus",
    endpoint: { url: defaultUrl, variables: ["OPENAI_BASE_URL"] },
    route: { protocol: "openai" },
    // Its list has one entry: the model that it is started with.
    isKnown: () => true,
  },
  instructions: {
    agentsFile: "AGENTS.md",
    skillsFolder: ".qwen/skills",
    systemPrompt: true,
    appendSystemPrompt: true,
    modes: [],
  },
  reasoning: {
    efforts: { none: "none", low: "low", medium: "medium", high: "high", xhigh: "xhigh", max: "max" },
    // Its session has an option for it only with some models.
    by: "prepared",
  },
  supportsPermissionRequests: true,
  ownTools: {
    run_shell_command: "shell",
    edit: "edit",
    write_file: "edit",
    notebook_edit: "edit",
    read_file: "read",
    list_directory: "read",
    glob: "read",
    grep_search: "read",
    web_fetch: "fetch",
    skill: "other",
    todo_write: "other",
  },
  maxToolCallMs: 3_600_000,
  clientCapabilities: {},
  reports: { reasoning: true, plans: true, usage: true },
  quirks: {
    savesBeforeAnswering: true,
    promptsBeforeTools: true,
    replaysLate: false,
    staysInOrder: true,
    failureMeta: [],
  },
  prepare,
  identify,
};

const notes = ["todo_write"];

/** Tools that outlive the turn, act without asking, or ask the user in a way that isn't passed on. */
const unavailable = [
  "agent",
  "artifact",
  "ask_user_question",
  "create_sub_session",
  "enter_plan_mode",
  "enter_worktree",
  "exit_plan_mode",
  "exit_worktree",
  "get_goal",
  "image_gen",
  "list_agents",
  "lsp",
  "monitor",
  "propose_goal",
  "record_artifact",
  "record_source",
  "report_findings",
  "save_memory",
  "send_message",
  "task_stop",
  "update_goal",
  "workflow",
];

/** Its settings are given as the system's: they take precedence over those of the home and the workspace. */
function prepare(preparation: Preparation): PreparedProfile {
  const { request, home, model, endpoint } = preparation;
  const folder = join(home, ".qwen");
  const system = join(folder, "ambit/settings.json");
  const { default: mode } = request.permissions;
  const offersNotes = mode === "allow" || mode === "allow_reads";
  const offered = Object.keys(qwen.ownTools).filter((name) => offersNotes || !notes.includes(name));
  const environment: Record<string, string> = {
    QWEN_CODE_SYSTEM_SETTINGS_PATH: system,
    OPENAI_MODEL: model,
    OPENAI_BASE_URL: endpoint.baseUrl ?? defaultUrl,
  };
  if (request.modelConnection?.credentialMode === "none" && endpoint.key === undefined)
    environment.OPENAI_API_KEY = "none";
  const files: FileEntry[] = [
    { path: system, content: JSON.stringify(settings(preparation, offered), undefined, 2) },
    // What an earlier turn may have left where its own settings and variables are.
    { path: join(folder, "settings.json"), content: "{}" },
    { path: join(folder, ".env"), content: "" },
    { path: join(home, ".env"), content: "" },
  ];
  const options: string[] = [];
  if (request.systemPrompt !== undefined) options.push("--system-prompt", request.systemPrompt);
  if (request.appendSystemPrompt !== undefined)
    options.push("--append-system-prompt", request.appendSystemPrompt);
  return { files, environment, arguments: options, session: { mode: "default" } };
}

function settings({ model, effort, servers }: Preparation, offered: readonly string[]): object {
  return {
    model: {
      name: model,
      skipNextSpeakerCheck: true,
      skipLoopDetection: true,
      // Otherwise it leaves images out for a model that it doesn't know.
      generationConfig: {
        maxRetries: 0,
        modalities: { image: true },
        ...(effort === undefined ? {} : { reasoning: effort === "none" ? false : { effort } }),
      },
    },
    security: { auth: { selectedType: "openai" }, folderTrust: { enabled: false } },
    permissions: {
      ask: [...offered, ...servers.map(({ name }) => `mcp__${name}`)],
      deny: unavailable,
    },
    tools: {
      // Programs that would provide further tools. They would run at the start, without a question.
      discoveryCommand: "",
      callCommand: "",
      core: offered,
      disabled: unavailable,
      approvalMode: "default",
      toolSearch: { enabled: false },
      shell: { enableInteractiveShell: false },
    },
    mcp: { allowed: servers.map(({ name }) => name), serverCommand: "" },
    ui: { enableFollowupSuggestions: false },
    memory: { enableManagedAutoMemory: false, enableManagedAutoDream: false, enableAutoSkill: false },
    general: { enableAutoUpdate: false, disableAutoUpdate: true, checkpointing: { enabled: false } },
    privacy: { usageStatisticsEnabled: false },
    telemetry: { enabled: false },
    disableAllHooks: true,
  };
}

function identify(call: ToolCallView, servers: readonly string[]): ToolIdentity {
  const published =
    publishedTool(call.name, ["mcp__{server}__{tool}"], servers) ??
    publishedTool(call.title, ["{tool} ({server} MCP Server)", "mcp__{server}__{tool}"], servers);
  if (published !== undefined) {
    const input = inputInWords(call);
    return input === undefined ? published : { ...published, input };
  }
  const name = call.name ?? nameByKind[call.kind ?? ""] ?? call.title ?? "tool";
  return notes.includes(name) ? { name, readOnly: true } : { name };
}

const nameByKind: Readonly<Record<string, string>> = {
  execute: "run_shell_command",
  edit: "write_file",
  read: "read_file",
  search: "grep_search",
  fetch: "web_fetch",
};
