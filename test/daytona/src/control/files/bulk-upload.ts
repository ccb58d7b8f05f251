import type { IncomingMessage, ServerResponse } from "node:http";
import { basename } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import busboy from "busboy";
import { badRequest } from "../../http/api-error.js";
import { sendJson } from "../../http/json.js";
import { askToolbox, type ToolboxTarget } from "../toolbox/toolbox-client.js";

/** A multipart form of `files[i].path` and, after it, `files[i].file`. */
export async function bulkUpload(
  request: IncomingMessage,
  response: ServerResponse,
  { socketPath }: ToolboxTarget,
): Promise<void> {
  const paths = new Map<string, string>();
  const uploads: Promise<void>[] = [];
  const files: { name: string; path: string; type: string }[] = [];
  const errors: string[] = [];

  const form = busboy({ headers: request.headers, limits: { fieldSize: 64 * 1024 } });
  form.on("field", (name, value) => paths.set(name.replace(/\.path$/, ""), value));
  form.on("file", (name, content) => {
    const path = paths.get(name.replace(/\.file$/, ""));
    if (path === undefined) {
      errors.push(`${name}: missing .path metadata`);
      content.resume();
      return;
    }
    uploads.push(
      upload(socketPath, path, content).then(
        () => void files.push({ name: basename(path), path, type: "file" }),
        (error) => void errors.push(`${path}: ${error instanceof Error ? error.message : error}`),
      ),
    );
  });
  try {
    await pipeline(request, form);
  } catch {
    throw badRequest("invalid multipart form");
  } finally {
    await Promise.all(uploads);
  }
  if (errors.length > 0) sendJson(response, 400, { errors, files });
  else sendJson(response, 200, { files });
}

async function upload(socketPath: string, path: string, content: Readable): Promise<void> {
  const answer = await askToolbox(
    socketPath,
    "PUT",
    `/files/content?path=${encodeURIComponent(path)}`,
    content,
  );
  let body = "";
  for await (const chunk of answer.setEncoding("utf8")) body += chunk;
  if (answer.statusCode === 204) return;
  const { message } = JSON.parse(body);
  throw new Error(String(message));
}
