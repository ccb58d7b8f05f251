import type { ServerResponse } from "node:http";
import { BOUNDARY_HEADER } from "../http/own-response.js";

const texts = {
  403: "Refused by Ambit's boundary",
  426: "Upgrade Required",
  501: "Not Implemented",
  502: "Bad Gateway",
  503: "Service Unavailable",
} as const;

/** A response of the proxy itself as plain text, which git shows to its user; as JSON to git LFS, which shows only that. */
export function sendText(response: ServerResponse, status: keyof typeof texts, reason: string): void {
  if (response.headersSent || response.destroyed) return void response.destroy();
  const isRefused = status === 403;
  const lead = isRefused ? "Ambit's boundary refused this request" : "Ambit's proxy can't serve this";
  const message = `${lead}: ${reason}.`;
  const isLfs = response.req.headers["user-agent"]?.startsWith("git-lfs/") === true;
  response.writeHead(status, texts[status], {
    "content-type": isLfs ? "application/vnd.git-lfs+json" : "text/plain; charset=utf-8",
    "cache-control": "no-store",
    connection: "close",
    // The available upgrade (RFC 9110 section 15.5.22): none.
    ...(status === 426 ? { upgrade: "HTTP/1.1" } : {}),
    [BOUNDARY_HEADER]: isRefused ? "refused" : "passed",
  });
  response.end(isLfs ? JSON.stringify({ message }) : `${message}\n`);
}
