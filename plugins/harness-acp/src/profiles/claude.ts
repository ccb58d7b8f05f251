import { join, normalize } from "node:path/posix";
import {
  type Issue,
  type JsonLimits,
  type JsonObject,
  JsonTooLarge,
  parseBoundedJson,
  type RunRequest,
} from "@ambit/core/plugin";
import { z } from "zod";
import type {
  ModelAccess,
  ModelEndpoint,
  Preparation,
  PreparedProfile,
  Profile,
  ToolCallView,
  ToolIdentity,
} from "./profile.js";
import { regionOf } from "./providers.js";
import { publishedTool } from "./tool-names.js";

const model: ModelAccess = {
  providers: ["anthropic", "claude"],
  credentials: ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
  defaultModel: "claude-sonnet-5",
  endpoint: { url: "https://api.anthropic.com", variables: ["ANTHROPIC_BASE_URL"] },
  route: { protocol: "anthropic", auxiliaryModels: ["claude-*haiku*"] },
  // It lists short names only.
  isKnown: (model) => model.startsWith("claude-"),
};

/** Claude Code by its ACP adapter (`@agentclientprotocol/claude-agent-acp` 0.101), with an API key or a token. */
export const claude: Profile = {
  id: "claude",
  title: "Claude Code",
  aliases: ["claude_code"],
  program: {
    package: "@agentclientprotocol/claude-agent-acp",
    bin: "claude-agent-acp",
    adapts: "@anthropic-ai/claude-agent-sdk",
    inImage: "mounted",
  },
  arguments: [],
  environment: {
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    DISABLE_TELEMETRY: "1",
    DISABLE_ERROR_REPORTING: "1",
    DISABLE_AUTOUPDATER: "1",
    // It refuses to run as root otherwise, which its user is in some sandboxes.
    IS_SANDBOX: "1",
    // Otherwise the model would have to search for the published tools first.
    ENABLE_TOOL_SEARCH: "false",
    // Its ten retries would hide a failed model for three minutes.
    CLAUDE_CODE_MAX_RETRIES: "1",
    CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION: "false",
    // Background tasks would outlive the turn.
    CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: "1",
    MCP_TOOL_TIMEOUT: "3600000",
  },
  model,
  modelFor: (request) => cloudAccess(request) ?? model,
  instructions: {
    agentsFile: "CLAUDE.md",
    skillsFolder: ".claude/skills",
    systemPrompt: true,
    appendSystemPrompt: true,
    modes: ["default", "plan"],
  },
  reasoning: {
    efforts: { low: "low", medium: "medium", high: "high", xhigh: "xhigh", max: "max" },
    by: "session",
  },
  supportsPermissionRequests: true,
  ownTools: {
    Bash: "shell",
    Edit: "edit",
    Write: "edit",
    NotebookEdit: "edit",
    Read: "read",
    WebFetch: "fetch",
    WebSearch: "fetch",
    Skill: "other",
    TaskCreate: "other",
    TaskGet: "other",
    TaskList: "other",
    TaskUpdate: "other",
  },
  maxToolCallMs: 3_600_000,
  // What its subagents say: their texts name the call that began them.
  clientCapabilities: { _meta: { "subagent-transcript": true } },
  reports: { reasoning: true, plans: true, usage: true },
  quirks: {
    savesBeforeAnswering: true,
    promptsBeforeTools: false,
    replaysLate: false,
    staysInOrder: false,
    failureMeta: [],
  },
  issues,
  prepare,
  identify,
};

/** Tools for its own notes. They need no permission, or aren't offered. */
const notes = ["TaskCreate", "TaskGet", "TaskList", "TaskUpdate"];

const tools = ["Bash", "Edit", "NotebookEdit", "Read", "Skill", "WebFetch", "WebSearch", "Write"];

/**
 * Every call is put to the runner, including tools and commands that it would run unasked. The rule is set twice, as
 * the embedding program's policy and as session settings: an administrator's file in an image replaces the first.
 *
 * Its settings come from a folder that is empty at each start, not from the workspace or the home: hooks, variables,
 * helper programs and MCP servers there would act without a question. Instructions and skills are still read from the
 * workspace.
 */
function prepare({ request, workspace, fresh, model, endpoint, servers }: Preparation): PreparedProfile {
  const { default: mode } = request.permissions;
  const offersNotes = mode === "allow" || mode === "allow_reads";
  const environment: Record<string, string> = { ANTHROPIC_MODEL: model };
  const cloud = cloudSettings(request, endpoint);
  const { baseUrl } = endpoint;
  if (cloud !== undefined) Object.assign(environment, cloud);
  else if (baseUrl !== undefined) environment.ANTHROPIC_BASE_URL = baseUrl;
  // It doesn't start a turn without a key, even if the endpoint needs none.
  if (request.modelConnection?.credentialMode === "none" && endpoint.key === undefined)
    environment.ANTHROPIC_API_KEY = "none";
  const permissions = {
    ask: ["*"],
    deny: denials(request.harnessFiles, servers),
    disableBypassPermissionsMode: "disable",
  };
  const { systemPrompt, appendSystemPrompt: append } = request;
  const prompt =
    systemPrompt === undefined
      ? append === undefined
        ? undefined
        : { append }
      : [systemPrompt, ...(append === undefined ? [] : [append])].join("\n\n");
  const requested = request.harnessMode;
  return {
    files: [{ path: join(fresh, ".claude/settings.json"), content: "{}" }],
    environment,
    session: { mode: requested === undefined || requested === "" ? "default" : requested },
    sessionMeta: {
      ...(prompt === undefined ? {} : { systemPrompt: prompt }),
      claudeCode: {
        options: {
          tools: offersNotes ? [...tools, ...notes] : tools,
          settings: { permissions, env: environment, disableAllHooks: true, apiKeyHelper: "" },
          managedSettings: { permissions, disableAllHooks: true },
          strictMcpConfig: true,
          settingSources: ["project"],
          projectConfigRoot: fresh,
          additionalDirectories: [workspace],
          promptSuggestions: false,
        },
      },
    },
  };
}

/** Its settings in a workspace. */
const settingsFiles = [".claude/settings.json", ".claude/settings.local.json"];

/** Denials are repeated for each server. */
const maxDenials = 1_000;

const settingsSchema = z.looseObject({
  permissions: z.looseObject({ deny: z.array(z.string()).max(maxDenials).nullish() }).nullish(),
});

const settingsLimits: JsonLimits = { maxLength: 1024 * 1024, maxValues: 10_000, maxDepth: 64 };

type Denials = { readonly entries: readonly string[] } | { readonly problem: string };

/** The Agenta runner's name for its publication, which settings written for it use. */
const referencePrefix = "mcp__agenta-tools__";

/** Settings of the request whose denials can't be read: a run without them would allow what they deny. */
function issues({ harnessFiles }: RunRequest): readonly Issue[] {
  return harnessFiles.flatMap(({ path, content }, index) => {
    const read = isSettings(path) ? denialsIn(content) : { entries: [] };
    if (!("problem" in read)) return [];
    const message = `${read.problem}, so what ${normalize(path)} denies can't be applied: correct it, or leave the file out`;
    return [{ path: `harnessFiles[${index}].content`, message }];
  });
}

/**
 * Denials in the request's own settings, which the agent doesn't read. Those that name published tools like the Agenta
 * runner apply under Ambit's names too.
 */
function denials(files: RunRequest["harnessFiles"], servers: Preparation["servers"]): readonly string[] {
  const entries = files
    .filter(({ path }) => isSettings(path))
    .flatMap(({ content }) => {
      const read = denialsIn(content);
      return "entries" in read ? read.entries : [];
    });
  const ofPublished = servers.flatMap(({ name }) =>
    entries
      .filter((entry) => entry.startsWith(referencePrefix))
      .map((entry) => `mcp__${name}__${entry.slice(referencePrefix.length)}`),
  );
  return [...entries, ...ofPublished];
}

function isSettings(path: string): boolean {
  return settingsFiles.includes(normalize(path));
}

function denialsIn(content: string): Denials {
  if (content.trim() === "") return { entries: [] };
  let value: unknown;
  try {
    value = parseBoundedJson(content, settingsLimits);
  } catch (error) {
    return { problem: error instanceof JsonTooLarge ? error.message : "isn't valid JSON" };
  }
  const parsed = settingsSchema.safeParse(value);
  if (parsed.success) return { entries: parsed.data.permissions?.deny ?? [] };
  const limit = maxDenials.toLocaleString("en");
  return { problem: `isn't an object whose permissions.deny is a list of at most ${limit} texts` };
}

function identify(call: ToolCallView, servers: readonly string[]): ToolIdentity {
  const name = call.name ?? nameByKind[call.kind ?? ""] ?? call.title ?? "tool";
  const published = publishedTool(name, ["mcp__{server}__{tool}"], servers);
  if (published !== undefined) return published;
  return notes.includes(name) ? { name, readOnly: true } : { name };
}

/** Its titles are the text of a command or a file, and so chosen by the model. */
const nameByKind: JsonObject & Readonly<Record<string, string>> = {
  execute: "Bash",
  edit: "Edit",
  read: "Read",
  fetch: "WebFetch",
};

/** Claude's models in a cloud: `modelConnection.deployment`. */
type Cloud = "bedrock" | "vertex";

const clouds: Readonly<Record<string, Cloud>> = { bedrock: "bedrock", vertex: "vertex", vertex_ai: "vertex" };

function cloudOf({ modelConnection }: RunRequest): Cloud | undefined {
  const named = modelConnection?.deployment ?? "";
  return Object.hasOwn(clouds, named) ? clouds[named] : undefined;
}

/** The location of the models in the cloud that a request names; undefined for Anthropic's own API. Pure. */
function cloudAccess(request: RunRequest): ModelAccess | undefined {
  const cloud = cloudOf(request);
  if (cloud === undefined) return undefined;
  const region = regionOf(request);
  const shared = { providers: ["anthropic", "claude"], defaultModel: "claude-sonnet-5", isKnown: () => true };
  if (cloud === "bedrock") {
    const url = `https://bedrock-runtime.${region ?? "us-east-1"}.amazonaws.com`;
    return {
      ...shared,
      credentials: [
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_BEARER_TOKEN_BEDROCK",
      ],
      endpoint: { url, variables: ["ANTHROPIC_BEDROCK_BASE_URL"] },
      route: {
        protocol: "bedrock",
        keyVariable: "ANTHROPIC_AUTH_TOKEN",
        auxiliaryModels: ["*anthropic.claude-*haiku*"],
      },
    };
  }
  const host = region === undefined || region === "global" ? "" : `${region}-`;
  return {
    ...shared,
    credentials: [
      "GOOGLE_APPLICATION_CREDENTIALS",
      "GOOGLE_APPLICATION_CREDENTIALS_JSON",
      "CLOUDSDK_AUTH_ACCESS_TOKEN",
    ],
    endpoint: {
      url: `https://${host}aiplatform.googleapis.com/v1`,
      variables: ["ANTHROPIC_VERTEX_BASE_URL"],
    },
    route: {
      protocol: "vertex",
      basePath: "/v1",
      keyVariable: "ANTHROPIC_AUTH_TOKEN",
      auxiliaryModels: ["claude-*haiku*"],
    },
  };
}

/**
 * Settings that make Claude Code use a cloud. With a model route they leave out what would sign: the route signs. Pure.
 */
function cloudSettings(request: RunRequest, endpoint: ModelEndpoint): Record<string, string> | undefined {
  const cloud = cloudOf(request);
  if (cloud === undefined) return undefined;
  const { baseUrl, key } = endpoint;
  const region = regionOf(request);
  const isBedrock = cloud === "bedrock";
  return {
    [isBedrock ? "CLAUDE_CODE_USE_BEDROCK" : "CLAUDE_CODE_USE_VERTEX"]: "1",
    ...(region === undefined ? {} : { [isBedrock ? "AWS_REGION" : "CLOUD_ML_REGION"]: region }),
    ...(baseUrl === undefined
      ? {}
      : { [isBedrock ? "ANTHROPIC_BEDROCK_BASE_URL" : "ANTHROPIC_VERTEX_BASE_URL"]: baseUrl }),
    ...(key === undefined
      ? {}
      : {
          [isBedrock ? "CLAUDE_CODE_SKIP_BEDROCK_AUTH" : "CLAUDE_CODE_SKIP_VERTEX_AUTH"]: "1",
          // Vertex's client then sends no key at all, but the route requires one.
          ANTHROPIC_CUSTOM_HEADERS: `x-api-key: ${key}`,
        }),
  };
}
