import { isAbsolute, join, normalize } from "node:path/posix";
import { type ModelProtocol, type OwnTools, secret } from "@ambit/core/plugin";
import { z } from "zod";
import type { Preparation, PreparedProfile, Profile, ToolCallView, ToolIdentity } from "./profile.js";
import { publishedTool } from "./tool-names.js";

const protocols = ["anthropic", "openai", "gemini"] as const satisfies readonly ModelProtocol[];

/** Variables of an agent's process, by name. */
export const variablesSchema = z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/), secret(z.string()));

const absolute = z.string().refine(isAbsolute, "must be an absolute path");

/** Any agent that speaks ACP, by configuration alone. */
export const customAgentSchema = z.strictObject({
  /** The name in messages. Default: its id. */
  title: z.string().min(1).optional(),
  /** Absolute path of its program; a `.js`, `.mjs` or `.cjs` file is run by Node.js. */
  command: absolute,
  /** The program in a sandbox with a separate image: a name on the image's `PATH`, or a path. */
  commandInImage: z.string().min(1).optional(),
  /** Arguments of the program. May contain the same placeholders as `files[].content`. */
  args: z.array(z.string()).default([]),
  /** Variables of every run. May contain the same placeholders. */
  env: variablesSchema.default({}),
  /** Further files and folders of the runner that it needs, as absolute paths. */
  paths: z.array(absolute).default([]),
  /** Files that are written into its home before it starts. */
  files: z
    .array(
      z.strictObject({
        path: z
          .string()
          .min(1)
          .refine(
            (path) => !isAbsolute(path) && !normalize(path).startsWith(".."),
            "must be relative to the home, and stay in it",
          ),
        /**
         * `{{home}}`, `{{model}}`, `{{baseUrl}}` (the address of its model in this run) and `{{key}}` (the credential
         * to send) are replaced.
         */
        content: z.string(),
      }),
    )
    .default([]),
  /** How it reaches its model. Absent: it has none, needs no credential and connects to nothing. */
  model: z
    .strictObject({
      /** The API that it speaks. */
      protocol: z.enum(protocols),
      /** The model's address unless the request names another. */
      url: secret(z.url(), "url"),
      /** Used if the request names none. */
      default: z.string().min(1),
      /** The variable of its credential. */
      credential: z.string().min(1),
      /** The variable of its base URL. Default: none; `files` or `args` contain it as `{{baseUrl}}`. */
      baseUrlVariable: z.string().min(1).optional(),
      /** Values of `modelConnection.provider` that it supports. Default: the protocol's name. */
      providers: z.array(z.string()).min(1).optional(),
    })
    .optional(),
  /** The workspace file that it reads as standing instructions. */
  agentsFile: z.string().min(1).default("AGENTS.md"),
  /** Where it looks for skills, in the workspace. */
  skillsFolder: z.string().min(1).default(".agents/skills"),
  /**
   * Whether it asks before each use of its own tools, including harmless ones, whatever settings are in its workspace.
   * If not, only requests that allow all of those are accepted. Ambit can't check this: set it only if you have tested
   * it.
   */
  asksBeforeOwnTools: z.boolean().default(false),
  /** What it does before its first conversation, so that it can be started ahead (`prewarm`). Default: it can't. */
  ahead: z
    .strictObject({
      /** The number of its processes, at most. */
      processes: z.int().min(1).max(1_000).default(1),
      /** Files and folders that it creates, relative to its home. */
      home: z.array(z.string().min(1)).default([]),
      /** Methods of the notifications that it sends. */
      notifications: z.array(z.string().min(1)).default([]),
    })
    .optional(),
  /** The session mode that is set before the first prompt. Default: the agent's own. */
  mode: z.string().min(1).optional(),
  /** Formats of the titles of its calls of published tools, tried in this order. */
  toolTitles: z
    .array(z.string().regex(/\{tool\}/, "must contain {tool}"))
    .default([
      "mcp__{server}__{tool}",
      "{tool} ({server} MCP Server)",
      "mcp_{server}_{tool}",
      "{server}_{tool}",
    ]),
  /** Milliseconds that it lets one tool call wait. */
  maxToolCallMs: z.int().positive().default(60_000),
});
export type CustomAgent = z.output<typeof customAgentSchema>;

/** Its own tools are named after what they do: nothing else is known about them. */
const ownTools: OwnTools = { shell: "shell", edit: "edit", read: "read", fetch: "fetch" };

/** The profile of an agent that a configuration describes. */
export function customProfile(id: string, agent: CustomAgent): Profile {
  const { model } = agent;
  return {
    id,
    title: agent.title ?? id,
    aliases: [],
    program: {
      package: id,
      bin: agent.commandInImage ?? id,
      inImage: "installed",
      files: agent.paths.map((path) => ({ path, what: agent.title ?? id })),
    },
    arguments: [],
    environment: {},
    ...(model === undefined
      ? {}
      : {
          model: {
            providers: model.providers ?? [model.protocol],
            credentials: [model.credential],
            defaultModel: model.default,
            isKnown: () => true,
            endpoint: {
              url: model.url,
              variables: model.baseUrlVariable === undefined ? [] : [model.baseUrlVariable],
            },
            route: { protocol: model.protocol },
          },
        }),
    instructions: {
      agentsFile: agent.agentsFile,
      skillsFolder: agent.skillsFolder,
      systemPrompt: false,
      appendSystemPrompt: false,
      modes: [],
    },
    supportsPermissionRequests: agent.asksBeforeOwnTools,
    ownTools,
    maxToolCallMs: agent.maxToolCallMs,
    clientCapabilities: {},
    reports: { reasoning: true, plans: true, usage: false },
    quirks: {
      savesBeforeAnswering: false,
      promptsBeforeTools: true,
      replaysLate: true,
      staysInOrder: false,
      failureMeta: [],
    },
    ...(agent.ahead === undefined ? {} : { ahead: agent.ahead }),
    prepare: (preparation) => prepare(agent, preparation),
    identify: (call, servers) => identify(agent, call, servers),
  };
}

function prepare(agent: CustomAgent, { home, model, endpoint, credential }: Preparation): PreparedProfile {
  const baseUrl = endpoint.baseUrl ?? agent.model?.url ?? "";
  const words = new Map(Object.entries({ home, model, baseUrl, key: credential ?? "" }));
  const filled = (text: string) =>
    text.replace(/\{\{(\w+)\}\}/g, (whole, word: string) => words.get(word) ?? whole);
  const variable = agent.model?.baseUrlVariable;
  return {
    files: agent.files.map(({ path, content }) => ({ path: join(home, path), content: filled(content) })),
    environment: {
      ...(variable === undefined ? {} : { [variable]: baseUrl }),
      ...Object.fromEntries(Object.entries(agent.env).map(([name, value]) => [name, filled(value)])),
    },
    arguments: agent.args.map(filled),
    ...(agent.mode === undefined ? {} : { session: { mode: agent.mode } }),
  };
}

/** The title is a tool's name only for a call of unknown kind: the title of a command is the command. */
function identify({ toolTitles }: CustomAgent, call: ToolCallView, servers: readonly string[]): ToolIdentity {
  const kind = call.kind ?? "other";
  const name = nameByKind[kind];
  if (name !== undefined) return { name };
  return (
    publishedTool(call.name, toolTitles, servers) ??
    publishedTool(call.title, toolTitles, servers) ?? { name: call.name ?? call.title ?? "tool" }
  );
}

const nameByKind: Readonly<Record<string, string>> = {
  execute: "shell",
  edit: "edit",
  delete: "edit",
  move: "edit",
  read: "read",
  search: "read",
  fetch: "fetch",
};
