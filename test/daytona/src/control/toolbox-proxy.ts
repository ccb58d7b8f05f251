import { SandboxState } from "@daytona/api-client";
import { badRequest } from "../http/api-error.js";
import type { Exchange } from "../http/routes.js";
import { bulkDownload } from "./files/bulk-download.js";
import { bulkUpload } from "./files/bulk-upload.js";
import type { Sandboxes } from "./sandboxes/sandboxes.js";
import { forwardRequest } from "./toolbox/raw-proxy.js";
import { askToolbox, type ToolboxTarget } from "./toolbox/toolbox-client.js";

/** Forwards requests for `/toolbox/<sandbox>/…` to the daemon inside. */
export class ToolboxProxy {
  constructor(
    private readonly sandboxes: Sandboxes,
    private readonly folder: string,
    /** Whether the daemon is Daytona's own, which implements everything: bytes are only forwarded. */
    readonly isRaw: boolean,
  ) {}

  /** Counts as activity. Throws if the sandbox doesn't exist or isn't started. */
  target(url: URL): ToolboxTarget {
    const [, , id = "", ...rest] = url.pathname.split("/");
    const sandbox = this.sandboxes.get(decodeURIComponent(id));
    if (sandbox.state !== SandboxState.STARTED)
      throw badRequest("failed to get runner info: no IP address found. Is the Sandbox started?");
    this.sandboxes.touch(sandbox);
    return { socketPath: `${this.folder}/${sandbox.index}.sock`, path: `/${rest.join("/")}${url.search}` };
  }

  async handle({ request, response }: Pick<Exchange, "request" | "response">, url: URL): Promise<void> {
    const target = this.target(url);
    const method = request.method ?? "GET";
    if (this.isRaw) return await forwardRequest(request, response, target);
    if (method === "POST" && target.path === "/files/bulk-upload")
      return await bulkUpload(request, response, target);
    if (method === "POST" && target.path === "/files/bulk-download")
      return await bulkDownload(request, response, target);
    const headers: Record<string, string> = {};
    for (const name of ["content-type", "content-length"]) {
      const value = request.headers[name];
      if (typeof value === "string") headers[name] = value;
    }
    const answer = await askToolbox(target.socketPath, method, target.path, request, headers);
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.once("error", () => response.destroy());
    response.once("close", () => answer.destroy());
    answer.pipe(response);
  }
}
