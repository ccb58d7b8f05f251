import { createReadStream, createWriteStream } from "node:fs";
import { chmod, mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { ApiError, badRequest } from "../http/api-error.js";
import { sendEmpty, sendJson } from "../http/json.js";
import type { Exchange, Routes } from "../http/routes.js";
import { fileInfo } from "./file-info.js";
import { changeOwner } from "./owner.js";

function required(query: URLSearchParams, name: string): string {
  const value = query.get(name);
  if (!value) throw badRequest(`${name} is required`);
  return value;
}

/** A file system error with the toolbox's messages and codes. */
export function fileError(error: unknown, path: string): ApiError {
  if (error instanceof ApiError) return error;
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "ENOENT") return new ApiError(404, `file not found: ${path}`, "FILE_NOT_FOUND");
  if (code === "EACCES" || code === "EPERM")
    return new ApiError(403, `permission denied: ${path}`, "FILE_ACCESS_DENIED");
  return badRequest(error instanceof Error ? error.message : String(error));
}

function octal(mode: string | null): number | undefined {
  if (mode === null || mode === "") return undefined;
  if (!/^[0-7]{1,4}$/.test(mode)) throw badRequest("invalid mode format");
  return Number.parseInt(mode, 8);
}

type FileHandler = (exchange: Exchange, path: string) => Promise<void>;

export function addFileRoutes(routes: Routes): void {
  const on = (method: string, route: string, handler: FileHandler) =>
    routes.on(method, route, async (exchange) => {
      const path = required(exchange.query, "path");
      await handler(exchange, path).catch((error) => {
        throw fileError(error, path);
      });
    });

  routes.on("GET", "/files", async ({ response, query }) => {
    const folder = query.get("path") || ".";
    try {
      const names = await readdir(folder);
      const infos = await Promise.allSettled(names.map((name) => fileInfo(join(folder, name))));
      // A dangling link, or one that was removed just now, isn't listed.
      const found = infos.flatMap((info) => (info.status === "fulfilled" ? [info.value] : []));
      sendJson(response, 200, found);
    } catch (error) {
      throw fileError(error, folder);
    }
  });

  routes.on("POST", "/files/move", async ({ response, query }) => {
    const source = required(query, "source");
    await rename(source, required(query, "destination")).catch((error) => {
      throw fileError(error, source);
    });
    sendEmpty(response, 200);
  });

  on("GET", "/files/info", async ({ response }, path) => sendJson(response, 200, await fileInfo(path)));

  on("POST", "/files/folder", async ({ response, query }, path) => {
    await mkdir(path, { recursive: true, mode: octal(query.get("mode")) ?? 0o755 });
    sendEmpty(response, 201);
  });

  on("DELETE", "/files", async ({ response, query }, path) => {
    const recursive = query.get("recursive") === "true";
    const isFolder = (await stat(path)).isDirectory();
    if (isFolder && !recursive) throw badRequest("cannot delete directory without recursive flag");
    await rm(path, { recursive });
    sendEmpty(response, 204);
  });

  on("POST", "/files/permissions", async ({ response, query }, path) => {
    const mode = octal(query.get("mode"));
    if (mode !== undefined) await chmod(path, mode);
    await changeOwner(path, query.get("owner") ?? "", query.get("group") ?? "");
    sendEmpty(response, 200);
  });

  on("GET", "/files/download", async ({ response }, path) => {
    const info = await stat(path);
    if (info.isDirectory())
      throw new ApiError(400, `invalid file path: path points to a directory: ${path}`, "INVALID_FILE_PATH");
    const stream = createReadStream(path);
    await new Promise<void>((resolve, reject) => stream.once("open", () => resolve()).once("error", reject));
    response.writeHead(200, {
      "content-type": "application/octet-stream",
      "content-length": info.size,
      "content-disposition": `attachment; filename="${encodeURIComponent(basename(path))}"`,
    });
    await pipeline(stream, response);
  });

  // From the control plane: one file of a multipart upload. Parent folders are created.
  on("PUT", "/files/content", async ({ request, response }, path) => {
    await mkdir(dirname(path), { recursive: true });
    await pipeline(request, createWriteStream(path));
    sendEmpty(response, 204);
  });
}
