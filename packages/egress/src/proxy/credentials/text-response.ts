import type { ServerResponse } from "node:http";
import { BOUNDARY_HEADER } from "../http/own-response.js";

const texts = {
  403: "Refused by Ambit's boundary",
  426: "Upgrade Required",
  501: "Not Implemented",
  502: "Bad Gateway",
  503: "Service Unavailable",
} as const;

/** A response of the proxy itself as plain text, which git shows to its user. */
export function sendText(response: ServerResponse, status: keyof typeof texts, reason: string): void {
  if (response.headersSent || response.destroyed) return void response.destroy();
  const isRefused = status === 403;
  const lead = isRefused ? "Ambit's boundary refused this request" : "Ambit's proxy can't serve this";
  response.writeHead(status, texts[status], {
    "content-type": "text/plain; charset=utf-8",
    "cache-control": "no-store",
    connection: "close",
    // The available upgrade (RFC 9110 section 15.5.22): none.
    ...(status === 426 ? { upgrade: "HTTP/1.1" } : {}),
    [BOUNDARY_HEADER]: isRefused ? "refused" : "passed",
  });
  response.end(`${lead}: ${reason}.\n`);
}
