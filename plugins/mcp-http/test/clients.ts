import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from "@modelcontextprotocol/client";
import { Client as LegacyClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as LegacyTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { onTestFinished } from "vitest";
import type { Published } from "./publications.js";

interface CallOptions {
  readonly signal?: AbortSignal;
  readonly onprogress?: (progress: { progress: number; message?: string | undefined }) => void;
}
interface CallResult {
  readonly text: string;
  readonly isError: boolean;
}

/** The operations that the tests need of a client, whichever SDK it uses. */
export interface TestClient {
  readonly protocol: string | undefined;
  listTools(): Promise<readonly object[]>;
  call(
    name: string,
    given?: Record<string, unknown>,
    options?: CallOptions,
    meta?: Record<string, unknown>,
  ): Promise<CallResult>;
}

const who = { name: "test-client", version: "1.0.0" };

/** The current SDK, which speaks the protocol's newest generation. */
export async function modernClient({ url, headers }: Published): Promise<TestClient> {
  const client = new ModernClient(who, { versionNegotiation: { mode: "auto" } });
  await client.connect(new ModernTransport(new URL(url), { requestInit: { headers: { ...headers } } }));
  onTestFinished(() => client.close());
  return {
    protocol: client.getNegotiatedProtocolVersion(),
    listTools: async () => (await client.listTools()).tools,
    call: async (name, given = {}, options = {}, meta = {}) =>
      resultOf(await client.callTool({ name, arguments: given, _meta: meta }, options)),
  };
}

/** The SDK of the previous generation, which most agents include. */
export async function legacyClient({ url, headers }: Published): Promise<TestClient> {
  const client = new LegacyClient(who);
  const transport = new LegacyTransport(new URL(url), { requestInit: { headers: { ...headers } } });
  await client.connect(transport);
  onTestFinished(() => client.close());
  return {
    protocol: transport.protocolVersion,
    listTools: async () => (await client.listTools()).tools,
    call: async (name, given = {}, options = {}, meta = {}) =>
      resultOf(await client.callTool({ name, arguments: given, _meta: meta }, undefined, options)),
  };
}

/** No SDK: what gemini and codex send; with or without handshake, it is one request at a time. */
export async function rawClient(published: Published): Promise<TestClient> {
  let id = 0;
  const ask = async (method: string, params: object, signal?: AbortSignal) => {
    id += 1;
    const response = await post(
      published,
      { jsonrpc: "2.0", id, method, params },
      signal === undefined ? {} : { signal },
    );
    const answer = (await messagesOf(response)).find((message) => message.id !== undefined);
    if (answer?.error !== undefined) throw new Error(answer.error.message);
    return answer?.result;
  };
  const { protocolVersion } = await ask("initialize", {
    protocolVersion: "2025-06-18",
    capabilities: {},
    clientInfo: who,
  });
  await post(published, { jsonrpc: "2.0", method: "notifications/initialized" });
  return {
    protocol: protocolVersion,
    listTools: async () => (await ask("tools/list", {})).tools,
    call: async (name, given = {}, { signal } = {}, meta = {}) =>
      resultOf(await ask("tools/call", { name, arguments: given, _meta: meta }, signal)),
  };
}

export async function post(
  { url, headers }: Published,
  message: unknown,
  more: { readonly headers?: Record<string, string>; readonly signal?: AbortSignal } = {},
): Promise<Response> {
  return await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...headers,
      ...more.headers,
    },
    body: typeof message === "string" ? message : JSON.stringify(message),
    ...(more.signal === undefined ? {} : { signal: more.signal }),
  });
}

/** The JSON-RPC messages of an answer, JSON or SSE. */
export async function messagesOf(response: Response) {
  const text = await response.text();
  const found = response.headers.get("content-type")?.startsWith("text/event-stream")
    ? [...text.matchAll(/^data: (.+)$/gm)].map(([, data]) => JSON.parse(data ?? ""))
    : [JSON.parse(text)].flat();
  return found;
}

function resultOf(result: object): CallResult {
  const content = "content" in result ? result.content : undefined;
  const [block] = Array.isArray(content) ? content : [];
  return { text: String(block?.text), isError: "isError" in result && result.isError === true };
}
