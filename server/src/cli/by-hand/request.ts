import type { RunRequest, runRequestSchema } from "@ambit/core/contract";
import type { z } from "zod";
import type { FolderFile } from "./folder-files.js";
import { modelConnectionFrom } from "./model-connection.js";

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
}

type RequestInput = z.input<typeof runRequestSchema>;

export interface ByHandRequest {
  readonly prompt: string;
  readonly options: ByHandOptions;
  readonly files: readonly FolderFile[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Milliseconds that a question waits; 0 without a terminal. */
  readonly waitMs: number;
}

/** The request that these words make. It is validated like any other. Pure. */
export function requestByHand({ prompt, options, files, environment, waitMs }: ByHandRequest): object {
  const { agent, sandbox, model, filesystem = "workspace", secrets, memory, permissions } = options;
  const modelConnection = modelConnectionFrom(environment, agent, model);
  return {
    ...(agent === undefined ? {} : { harness: agent }),
    ...(sandbox === undefined ? {} : { sandbox }),
    ...(model === undefined ? {} : { model }),
    messages: [{ role: "user", content: prompt }],
    permissions: { default: permissions ?? "allow_reads" },
    ...(waitMs === 0 ? {} : { interactions: { waitMs } }),
    sandboxPermission: {
      network: networkOf(options.network ?? "off"),
      filesystem,
      ...(memory === undefined ? {} : { resources: { memoryMb: memory } }),
      ...(secrets === undefined ? {} : { secrets }),
    },
    ...(files.length === 0
      ? {}
      : { workspace: { sources: [{ type: "files", files: files.map(asSource) }] } }),
    outputs: { patch: true, maxFiles: 10_000, maxBytes: 256 * 1024 * 1024 },
    ...(modelConnection === undefined ? {} : { modelConnection }),
  } satisfies { [Key in keyof RunRequest]?: unknown } & Pick<RequestInput, "messages">;
}

/** The same without its credentials: a file isn't the place for them. */
export function withoutCredentials(request: object): object {
  if (!("modelConnection" in request) || typeof request.modelConnection !== "object") return request;
  return { ...request, modelConnection: { ...request.modelConnection, credentials: [] } };
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
