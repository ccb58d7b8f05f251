import type { Message, RunRequest, runRequestSchema } from "@ambit/core/contract";
import type { z } from "zod";
import type { FolderFile } from "./folder-files.js";
import type { GuardedPaths } from "./in-place/in-place.js";
import { type ModelConnectionInput, modelConnectionFrom } from "./model-connection.js";
import type { SkillInput } from "./skill-folder.js";

/** What a person says on the command line. */
export interface ByHandOptions {
  readonly agent?: string;
  readonly folder?: string;
  /** `off`, `on`, or destinations with commas between them. */
  readonly network?: string;
  readonly filesystem?: string;
  /** MiB. */
  readonly memory?: number;
  readonly secrets?: string;
  readonly sandbox?: string;
  readonly model?: string;
  readonly permissions?: string;
  /** MCP servers: `https://…`, or `name=https://…`. */
  readonly mcp?: readonly string[];
  /** Folders, each with a `SKILL.md`. */
  readonly skill?: readonly string[];
  /** Commands that prepare the environment. */
  readonly setup?: readonly string[];
  /** What they reach, as `network`. Default: the same. */
  readonly setupNetwork?: string;
  /** Globs of the folder's files that they depend on. Default: manifests and lockfiles, and what the commands name. */
  readonly setupInputs?: readonly string[];
}

type RequestInput = z.input<typeof runRequestSchema>;

interface HttpServer {
  readonly name: string;
  readonly connection: { readonly type: "http"; readonly url: string };
}

interface ByHandBody extends Readonly<Record<string, unknown>> {
  readonly modelConnection?: ModelConnectionInput;
  readonly mcpServers?: readonly HttpServer[] | undefined;
}

export interface ByHandRequest {
  readonly prompt: string;
  readonly options: ByHandOptions;
  /** What was said in earlier runs. */
  readonly earlier: readonly Message[];
  readonly files: readonly FolderFile[];
  /** Globs of those that the setup depends on. Default: all. */
  readonly setupInputs?: readonly string[] | undefined;
  /** What can't be changed, or reached, in the workspace. Default: nothing more than the backend protects. */
  readonly guarded?: GuardedPaths | undefined;
  /** Who makes commits inside. */
  readonly gitUser?: { readonly name: string; readonly email: string } | undefined;
  readonly skills: readonly SkillInput[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Milliseconds that a question waits; 0 without a terminal. */
  readonly waitMs: number;
}

function guardedMode({ readable, denied }: GuardedPaths): object {
  return { mode: "workspace", readable: [...readable], denied: [...denied] };
}

/** The request that these words make. It is validated like any other. Pure. */
export function requestByHand(asked: ByHandRequest): ByHandBody {
  const { prompt, options, earlier, files, guarded, gitUser, skills, environment, waitMs, setupInputs } =
    asked;
  const { agent, sandbox, model, filesystem = "workspace", secrets, memory, permissions } = options;
  const modelConnection = modelConnectionFrom(environment, agent, model);
  return {
    ...(agent === undefined ? {} : { harness: agent }),
    ...(sandbox === undefined ? {} : { sandbox }),
    ...(model === undefined ? {} : { model }),
    messages: [...earlier, { role: "user", content: prompt }],
    mcpServers: options.mcp?.map(mcpServer),
    skills: skills.length === 0 ? undefined : [...skills],
    permissions: { default: permissions ?? "allow_reads" },
    ...(waitMs === 0 ? {} : { interactions: { waitMs } }),
    sandboxPermission: {
      network: networkOf(options.network ?? "off"),
      filesystem: guarded === undefined || filesystem !== "workspace" ? filesystem : guardedMode(guarded),
      ...(memory === undefined ? {} : { resources: { memoryMb: memory } }),
      ...(secrets === undefined ? {} : { secrets }),
    },
    ...(files.length === 0
      ? {}
      : { workspace: { sources: [{ type: "files", files: files.map(asSource) }], gitUser } }),
    ...(options.setup === undefined
      ? {}
      : {
          environment: {
            setup: [...options.setup],
            inputs: setupInputs === undefined ? undefined : [...setupInputs],
            boundary: { network: networkOf(options.setupNetwork ?? options.network ?? "off") },
          },
        }),
    outputs: { patch: true, maxFiles: 10_000, maxBytes: 256 * 1024 * 1024 },
    ...(modelConnection === undefined ? {} : { modelConnection }),
  } satisfies { [Key in keyof RunRequest]?: unknown } & Pick<RequestInput, "messages">;
}

/**
 * The same without its credentials, and without what may be one in a URL: its user and its query. A file isn't the place
 * for them. Pure.
 */
export function withoutCredentials({ modelConnection, mcpServers, ...rest }: ByHandBody): object {
  return {
    ...rest,
    ...(modelConnection === undefined ? {} : { modelConnection: withoutKeys(modelConnection) }),
    mcpServers: mcpServers?.map(({ name, connection }) => ({
      name,
      connection: { ...connection, url: withoutSecretParts(connection.url) },
    })),
  };
}

function withoutKeys({ endpoint, ...rest }: ModelConnectionInput): ModelConnectionInput {
  return {
    ...rest,
    ...(endpoint === undefined ? {} : { endpoint: { baseUrl: withoutSecretParts(endpoint.baseUrl) } }),
    credentials: [],
  };
}

/** Empty for what is no URL, and refused anyway. */
function withoutSecretParts(text: string): string {
  if (!URL.canParse(text)) return "";
  const url = new URL(text);
  if (`${url.username}${url.password}${url.search}${url.hash}` === "") return text;
  url.username = "";
  url.password = "";
  url.search = "";
  url.hash = "";
  return url.href;
}

/** The name is the host's, unless one is given. */
function mcpServer(text: string): HttpServer {
  const named = /^([A-Za-z0-9_-]{1,64})=(.*)$/.exec(text);
  const url = named?.[2] ?? text;
  const host = URL.canParse(url) ? new URL(url).hostname : "server";
  const name = named?.[1] ?? (host.replaceAll(/[^A-Za-z0-9_-]+/g, "-").slice(0, 64) || "server");
  return { name, connection: { type: "http", url } };
}

function networkOf(text: string): unknown {
  if (text === "on" || text === "off") return text;
  return {
    allowlist: text
      .split(",")
      .map((entry) => entry.trim())
      .filter((entry) => entry !== ""),
  };
}

function asSource({ path, content, executable }: FolderFile): object {
  const text = content.toString("utf8");
  const isText = Buffer.from(text, "utf8").equals(content);
  return {
    path,
    ...(isText ? { content: text } : { content: content.toString("base64"), encoding: "base64" }),
    ...(executable ? { executable } : {}),
  };
}
