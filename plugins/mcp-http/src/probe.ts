import { randomUUID } from "node:crypto";
import type { Finding, Log, PublishedTool } from "@ambit/core/plugin";
import type { McpHttpConfig } from "./config.js";
import { endpointPath, openEndpoint } from "./endpoint.js";

const silent: Log = { debug: ignore, info: ignore, warn: ignore, error: ignore };
function ignore(): void {}

/**
 * Publishes a tool with secrets in it, like a run's tools, and reads everything that an agent can request. The control
 * is the tool's description, which must be there.
 */
export async function probeSecrets(
  config: McpHttpConfig,
  signal: AbortSignal,
  open: typeof openEndpoint = openEndpoint,
): Promise<Finding> {
  const capability = "secrets.hidden";
  const fix = "report this bug: mcp-http publishes private fields";
  const control = randomUUID();
  const secret = randomUUID();
  const tool: PublishedTool & Readonly<Record<string, unknown>> = {
    name: "probe",
    description: control,
    inputSchema: { type: "object" },
    callRef: secret,
    call: { path: secret },
    code: secret,
    env: { KEY: secret },
    options: { key: secret },
    toolCallback: { authorization: secret },
  };
  const failing = () => Promise.reject(new Error(secret));
  const endpoint = open({ name: "probe", tools: [tool], call: failing }, config, silent);
  try {
    const seen: string[] = [];
    for (const [method, params] of requests) {
      const response = await endpoint.handle(
        new Request(`http://127.0.0.1${endpointPath}`, {
          method: "POST",
          headers: {
            host: "127.0.0.1",
            "content-type": "application/json",
            accept: "application/json, text/event-stream",
          },
          body: JSON.stringify({ jsonrpc: "2.0", id: seen.length, method, params }),
          signal,
        }),
      );
      seen.push(await response.text());
    }
    const all = seen.join("\n");
    if (!all.includes(control)) {
      return {
        capability,
        proven: false,
        reason: "the control, the tool's description, was not listed",
        fix,
      };
    }
    if (all.includes(secret))
      return { capability, proven: false, reason: "a private field of a tool was published", fix };
  } finally {
    await endpoint.close();
  }
  return {
    capability,
    proven: true,
    how: "a published tool's description was read back; its callRef, call, code, env and the cause of its failure were not",
  };
}

const requests: readonly (readonly [method: string, params: Readonly<Record<string, unknown>>])[] = [
  [
    "initialize",
    { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "probe", version: "1.0.0" } },
  ],
  ["tools/list", {}],
  ["tools/call", { name: "probe", arguments: {} }],
  ["tools/call", { name: "absent", arguments: {} }],
];
