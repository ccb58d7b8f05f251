import type { ReadResourceResult, ResourceTemplateType } from "@modelcontextprotocol/server";

/** Bytes of a file that is read as a resource: a message has it whole. */
export const maxFileBytes = 8 * 1_048_576;

/** Bytes of all texts that are part of a result, where no URL opens them: its model reads them at once. */
export const maxEmbeddedBytes = 32_768;

/** What `resources/templates/list` answers. No list names the files of all runs: the result of each run links to its own. */
export const fileTemplates: readonly ResourceTemplateType[] = [
  {
    uriTemplate: "ambit://runs/{runId}/files/{+path}",
    name: "Files that left a run's workspace",
    description: "The result of run_agent and continue_run links to each.",
  },
];

/** A run's file as a resource, which the same caller reads over any connection. Pure. */
export function fileUri(runId: string, path: string): string {
  const segments = path.split("/").map(encodeURIComponent);
  return `ambit://runs/${encodeURIComponent(runId)}/files/${segments.join("/")}`;
}

/** Undefined for a URI of something else. Pure. */
export function fileOf(uri: string): { readonly runId: string; readonly path: string } | undefined {
  const [, runId, path] = /^ambit:\/\/runs\/([^/]+)\/files\/(.+)$/.exec(uri) ?? [];
  if (runId === undefined || path === undefined) return undefined;
  try {
    return { runId: decodeURIComponent(runId), path: path.split("/").map(decodeURIComponent).join("/") };
  } catch {
    return undefined;
  }
}

export type FileContent = ReadResourceResult["contents"][number];

/** The bytes of a file; undefined where it has more than these. */
export async function bytesOf({ headers, body }: Response, maxBytes: number): Promise<Buffer | undefined> {
  if (Number(headers.get("content-length")) > maxBytes) return void (await body?.cancel());
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of body ?? []) {
    size += part.length;
    if (size > maxBytes) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/** A text, where its bytes are one. Pure. */
export function contentOf(uri: string, bytes: Buffer): FileContent {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return { uri, mimeType: "text/plain", text };
  } catch {
    return { uri, mimeType: "application/octet-stream", blob: bytes.toString("base64") };
  }
}
