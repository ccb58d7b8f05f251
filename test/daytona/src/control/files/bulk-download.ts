import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { z } from "zod";
import { badRequest } from "../../http/api-error.js";
import { readJson } from "../../http/json.js";
import { askToolbox, type ToolboxTarget } from "../toolbox/toolbox-client.js";

const boundary = "DAYTONA-FILE-BOUNDARY";
const downloadRequest = z.object({ paths: z.array(z.string()).min(1) });

/** A multipart form with a part `file`, or `error` with the error's JSON, for each path. */
export async function bulkDownload(
  request: IncomingMessage,
  response: ServerResponse,
  { socketPath }: ToolboxTarget,
): Promise<void> {
  const wanted = downloadRequest.safeParse(await readJson(request));
  if (!wanted.success) throw badRequest('request body must be {"paths": [ ... ]} and non-empty');
  response.writeHead(200, { "content-type": `multipart/form-data; boundary=${boundary}` });
  for (const path of wanted.data.paths) {
    const answer = await askToolbox(socketPath, "GET", `/files/download?path=${encodeURIComponent(path)}`);
    const isFile = answer.statusCode === 200;
    const type = isFile ? "application/octet-stream" : "application/json; charset=utf-8";
    const encoded = encodeURIComponent(path);
    const lines = [
      `--${boundary}`,
      `Content-Disposition: form-data; name="${isFile ? "file" : "error"}"; filename="${encoded}"; filename*=utf-8''${encoded}`,
      `Content-Type: ${type}`,
      ...(isFile ? [`Content-Length: ${answer.headers["content-length"] ?? 0}`] : []),
    ];
    response.write(`${lines.join("\r\n")}\r\n\r\n`);
    await pipeline(answer, response, { end: false });
    response.write("\r\n");
  }
  response.end(`--${boundary}--\r\n`);
}
