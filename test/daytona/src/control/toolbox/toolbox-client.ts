import { request as httpRequest, type IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { z } from "zod";
import { ApiError } from "../../http/api-error.js";
import { readJson } from "../../http/json.js";

/** Where the proxy forwards a path to. */
export interface ToolboxTarget {
  readonly socketPath: string;
  /** Path and query for the daemon. */
  readonly path: string;
}

/** One request to the daemon of a sandbox, over its socket. The caller reads the response's body. */
export function askToolbox(
  socketPath: string,
  method: string,
  path: string,
  body?: Readable | string,
  headers: Readonly<Record<string, string>> = {},
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ socketPath, method, path, headers }, resolve);
    request.once("error", () =>
      reject(new ApiError(502, "bad gateway: the sandbox doesn't answer", "BAD_GATEWAY")),
    );
    if (body === undefined || typeof body === "string") request.end(body);
    else body.once("error", (error) => request.destroy(error)).pipe(request);
  });
}

const versionSchema = z.object({ version: z.string() });

/** The version of the daemon in a sandbox, as Daytona's runner asks for it. Undefined if it says none. */
export async function askVersion(socketPath: string): Promise<string | undefined> {
  const answer = await askToolbox(socketPath, "GET", "/version");
  return versionSchema.safeParse(await readJson(answer)).data?.version;
}
