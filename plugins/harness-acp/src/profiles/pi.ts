import { readFileSync } from "node:fs";
import { join } from "node:path/posix";
import {
  type Issue,
  type JsonObject,
  parseBoundedJson,
  type RunRequest,
  subscriptionPath,
} from "@ambit/core/plugin";
import { z } from "zod";
import type { Preparation, PreparedProfile, Profile, ToolCallView, ToolIdentity } from "./profile.js";
import { openai, providerOf, withVersion } from "./providers.js";

/**
 * Pi (1.6) by its ACP adapter (`pi-acp` 0.0.34). Neither supports MCP servers or permissions: Ambit's extension
 * provides the run's tools, asks before each of Pi's own, and reports a failed model.
 */
export const pi: Profile = {
  id: "pi",
  title: "Pi",
  aliases: [],
  program: {
    package: "pi-acp",
    bin: "pi-acp",
    inImage: "mounted",
    companion: {
      package: "@earendil-works/pi-coding-agent",
      bin: "pi",
      modules: ["cli.js", "cli-runtime.js", "chunks/*.js"],
    },
  },
  arguments: [],
  environment: { PI_OFFLINE: "1", PI_SKIP_VERSION_CHECK: "1", PI_TELEMETRY: "0" },
  model: openai,
  modelFor: providerOf,
  takesSubscription: true,
  instructions: { agentsFile: "AGENTS.md", systemPrompt: true, appendSystemPrompt: true, modes: [] },
  reasoning: {
    efforts: { none: "off", minimal: "minimal", low: "low", medium: "medium", high: "high", xhigh: "xhigh" },
    by: "session",
  },
  supportsPermissionRequests: true,
  ownTools: {
    bash: "shell",
    edit: "edit",
    write: "edit",
    read: "read",
    grep: "read",
    find: "read",
    ls: "read",
  },
  maxToolCallMs: 3_600_000,
  toolDelivery: "prepared",
  clientCapabilities: {},
  reports: { reasoning: true, plans: false, usage: false },
  quirks: {
    savesBeforeAnswering: true,
    promptsBeforeTools: false,
    replaysLate: false,
    staysInOrder: false,
    failureMeta: [{ path: ["piAcp", "notify", "level"], failed: "error" }],
  },
  prepare,
  permissionCall,
  identify,
};

/** Compiled with this package; Pi loads it from the agent's home. */
const extensionFile = new URL("../../dist/profiles/pi/extension.js", import.meta.url);

function prepare(preparation: Preparation): PreparedProfile {
  const { request, home, fresh, model, endpoint, servers, companion, searchPath, compiled } = preparation;
  // Its own folder in the home could hold programs, prompts and credentials of an earlier turn.
  const folder = join(fresh, "agent");
  const own = join(home, ".pi/ambit");
  const extension = join(own, "extension.cjs");
  const command = join(own, "pi");
  const { id, api, credentials, endpoint: known, version, isGeneric } = providerOf(request);
  const baseUrl = endpoint.baseUrl ?? (isGeneric ? known.url : undefined);
  const login = loginOf(request);
  const keyless = request.modelConnection?.credentialMode === "none" && endpoint.key === undefined;
  const { systemPrompt, appendSystemPrompt } = request;
  const options = [
    // The extension enables Pi's own tools: without it, there is no tool that could act unasked.
    [
      "--no-builtin-tools",
      "--no-extensions",
      "--extension",
      extension,
      "--no-approve",
      "--provider",
      id,
      "--model",
      model,
    ],
    systemPrompt === undefined ? [] : ["--system-prompt", join(own, "system.md")],
    // Skills of an untrusted project are ignored; the request's are in the workspace, its working folder.
    request.skills.length === 0 ? [] : ["--skill", ".agents/skills"],
    appendSystemPrompt === undefined ? [] : ["--append-system-prompt", join(own, "append.md")],
  ].flat();
  const listed = { id: model, input: ["text", "image"], reasoning: preparation.effort !== undefined };
  const provider = {
    // Of the three, only Anthropic's library adds the version itself.
    baseUrl: withVersion(baseUrl ?? known.url, id === "google" ? version : ""),
    api,
    apiKey: keyless ? "none" : `$${credentials[0]}`,
    // Of what OpenAI's own API has, these take only what all of them know.
    ...(isGeneric ? { compat: plainChat } : {}),
    // A model of its own list is replaced by this one: it reasons if it is told how much.
    models: [listed],
  };
  // The login takes the place of a key; the model may be newer than its list.
  const subscribed = { ...(baseUrl === undefined ? {} : { baseUrl }), models: [{ ...listed, api }] };
  const isListed = baseUrl === undefined && login === undefined;
  const settings = {
    ...(login === undefined ? {} : { transport: "sse" }),
    defaultProvider: id,
    defaultModel: model,
    defaultProjectTrust: "never",
    sessionDir: join(home, ".pi/agent/sessions"),
    quietStartup: true,
    enableInstallTelemetry: false,
    retry: { enabled: false },
  };
  const [executable, ...entry] = companion ?? ["pi"];
  const started = (...first: readonly string[]) =>
    `exec ${[executable, ...first, ...entry, ...options].map(quoted).join(" ")} "$@"`;
  // Not by a variable, which Pi's commands would have too.
  const fast =
    compiled === undefined ? [] : [`[ -r ${quoted(compiled)} ] && ${started("--require", compiled)}`];
  const text = (path: string, content: string | undefined) =>
    content === undefined ? [] : [{ path: join(own, path), content }];
  return {
    files: [
      { path: join(folder, "settings.json"), content: JSON.stringify(settings) },
      {
        path: join(folder, "models.json"),
        content: JSON.stringify({
          providers: isListed ? {} : { [id]: login === undefined ? provider : subscribed },
        }),
      },
      // Without the token that renews it: see `loginOf`.
      ...(login === undefined
        ? []
        : [
            { path: join(folder, "auth.json"), content: JSON.stringify({ [id]: { ...login, refresh: "" } }) },
          ]),
      { path: extension, content: commonJs(readFileSync(extensionFile, "utf8")) },
      { path: join(own, "servers.json"), content: JSON.stringify(servers) },
      ...text("system.md", systemPrompt),
      ...text("append.md", appendSystemPrompt),
      {
        path: command,
        content: `#!/bin/sh\n${withoutVersion}\nPATH=${quoted(searchPath)}\n${[...fast, started()].join("\n")}\n`,
        executable: true,
      },
    ],
    environment: {
      PI_ACP_PI_COMMAND: command,
      PI_CODING_AGENT_DIR: folder,
      PI_CODING_AGENT_SESSION_DIR: join(home, ".pi/agent/sessions"),
      AMBIT_PI_SERVERS: join(own, "servers.json"),
      // The adapter's alone, so that it finds this `pi` first: Pi and its commands get the image's or the runner's.
      PATH: `${own}:${searchPath}`,
    },
  };
}

/**
 * The adapter looks for updates at each session: it asks the `pi` on its PATH for its version, which takes Pi most of a
 * second, and then npm for the newest one. It leaves that when it gets no version.
 */
const withoutVersion = '[ "$*" = --version ] && exit';

/** Pi would load a compiler for a module that exports as ECMAScript does: a tenth of a second of CPU for each start. */
function commonJs(module: string): string {
  return module.replace("export default async function ambit", "module.exports = async function ambit");
}

const plainChat = { supportsStore: false, supportsDeveloperRole: false, maxTokensField: "max_tokens" };

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

/** The prefix of the titles of the extension's questions. */
const questionSchema = z.object({ toolCallId: z.string(), toolName: z.string(), input: z.unknown() });

/** The adapter turns each question into a separate call; it is about one that Pi has announced. */
function permissionCall(toolCall: JsonObject): JsonObject {
  if (typeof toolCall.title !== "string") return toolCall;
  const question = questionSchema.safeParse(parsed(toolCall.title));
  if (!question.success) return toolCall;
  const { toolCallId, toolName, input } = question.data;
  return { toolCallId, name: toolName, rawInput: input };
}

function parsed(text: string): unknown {
  try {
    return parseBoundedJson(text);
  } catch {
    // A question of another extension: its call is used unchanged.
    return undefined;
  }
}

function identify(call: ToolCallView, servers: readonly string[]): ToolIdentity {
  // A command's title is the command, which the adapter sends nowhere else.
  if (call.kind === "execute") {
    const isCommand = call.input === undefined && call.title !== undefined;
    return { name: "bash", ...(isCommand ? { input: { command: call.title } } : {}) };
  }
  const name = call.name ?? call.title ?? "tool";
  const [server] = servers;
  if (Object.hasOwn(pi.ownTools, name) || server === undefined) return { name };
  return { name, server };
}

/** Minutes that a login must still be valid: Pi renews one that has less than five. */
const minMinutes = 10;

const subscriptionSchema = z.object({
  id: z.string().regex(/^[A-Za-z0-9._-]{1,128}$/),
  provider: z.literal("chatgpt"),
  login: z.object({
    type: z.literal("oauth"),
    access: z.string().min(1),
    /** Milliseconds since 1970. */
    expires: z.int().positive().max(8_640_000_000_000_000),
    accountId: z.string().min(1).optional(),
  }),
});
type Login = z.infer<typeof subscriptionSchema>["login"];

/**
 * The login of a request, as an agent may have it: without the token that renews it. A renewed login can't be given back
 * to the platform, and the stored one would be dead. Pure.
 */
function loginOf({ modelConnection }: RunRequest): Login | undefined {
  return subscriptionSchema.safeParse(modelConnection?.subscription).data?.login;
}

/** Why an agent can't use the request's login. Pure. */
export function subscriptionIssues(
  { title, takesSubscription = false }: Profile,
  { modelConnection }: RunRequest,
  now: number,
): readonly Issue[] {
  const subscription = modelConnection?.subscription;
  // An agent that takes none doesn't deliver it, which the plan refuses.
  if (subscription === undefined || !takesSubscription) return [];
  const issue = (path: string, message: string) => [{ path: `${subscriptionPath}${path}`, message }];
  const parsed = subscriptionSchema.safeParse(subscription);
  if (!parsed.success) {
    const [first] = parsed.error.issues;
    const path = first === undefined ? "" : first.path.map((key) => `.${String(key)}`).join("");
    return issue(
      path,
      `must be a login for ChatGPT, as the platform stores it: ${first?.message ?? "it isn't"}`,
    );
  }
  if (modelConnection?.credentialMode !== "runtime_provided")
    return issue("", 'is for credentialMode "runtime_provided": name that, or send credentials alone');
  const { expires } = parsed.data.login;
  if (expires - now >= minMinutes * 60_000) return [];
  const when = `${expires > now ? "expires" : "expired"} at ${new Date(expires).toISOString()}`;
  return issue(
    ".login.expires",
    `${when}: ${title} would renew the login, and Ambit can't give the renewed one back. Have the platform renew it, and send one that is valid for ${minMinutes} minutes`,
  );
}
