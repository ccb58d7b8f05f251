import { once } from "node:events";
import { Agent, createServer, request as httpRequest, type Server, type ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { type ModelUse, newToken, requireBearer, type Sandbox } from "@ambit/core/plugin";
import { configSchema, ModelRouteGateway } from "@ambit/model-route";
import { getRequestListener } from "@hono/node-server";

/** How the scripted server answers: a few events, thousands at a model's pace, or many megabytes. */
export type Answer = "few" | "paced" | "many";

export interface Took {
  readonly firstByteMs: number;
  readonly totalMs: number;
}

const event = `data: ${JSON.stringify({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "word " } })}\n\n`;
const piece = event.repeat(600);
const last = 'data: {"type":"message_delta","usage":{"input_tokens":9,"output_tokens":9}}\n\n';

/** A scripted model server on loopback, and the route to it as a backend exposes one. */
export async function openRouted() {
  const model = createServer(async (request, response) => {
    for await (const _part of request);
    response.writeHead(200, { "content-type": "text/event-stream" });
    await answer(response, String(request.headers["user-agent"]));
    response.end(last);
  });
  const closers: (() => unknown)[] = [];
  const upstream = await listening(model);
  closers.push(() => close(model));
  const use: ModelUse = {
    protocol: "anthropic",
    endpoint: upstream,
    basePath: "",
    credentials: { ANTHROPIC_API_KEY: "sk-bench-0123456789" },
    headers: {},
    model: "bench",
    auxiliaryModels: [],
  };
  const expose: Sandbox["expose"] = async (handler) => {
    const token = newToken();
    const listener = getRequestListener(requireBearer(token, handler), { overrideGlobalObjects: false });
    const server = createServer(listener);
    const url = await listening(server);
    closers.push(() => close(server));
    return { url, token, close: async () => undefined };
  };
  const gateway = new ModelRouteGateway(configSchema.parse({}));
  const silent = () => undefined;
  const route = await gateway.open(use, {
    // Of a sandbox, a gateway uses this alone.
    sandbox: { expose } as unknown as Sandbox,
    log: { debug: silent, info: silent, warn: silent, error: silent },
    signal: new AbortController().signal,
    defer: (closer) => void closers.push(closer),
    admit: async () => ({ allowed: true }),
    begin: () => ({ used: silent, ended: silent }),
    onDecision: silent,
  });
  const agent = new Agent({ keepAlive: true });
  closers.push(() => agent.destroy());
  return {
    routed: (wanted: Answer) => post(route.baseUrl, route.key, wanted, agent),
    direct: (wanted: Answer) => post(upstream, "sk-bench-0123456789", wanted, agent),
    close: async () => {
      for (const closer of closers.reverse()) await closer();
    },
  };
}

async function answer(response: ServerResponse, wanted: string): Promise<void> {
  if (wanted === "few") return void response.write(event.repeat(3));
  if (wanted === "paced") {
    for (let sent = 0; sent < 1_000; sent += 10) {
      response.write(event.repeat(10));
      await delay(10);
    }
    return;
  }
  for (let sent = 0; sent < 16 * 2 ** 20; sent += piece.length) {
    if (!response.write(piece)) await once(response, "drain");
  }
}

/** One request, to the end of its answer. */
function post(base: string, key: string, wanted: Answer, agent: Agent): Promise<Took> {
  const begun = performance.now();
  return new Promise((resolve, reject) => {
    const headers = { "x-api-key": key, "content-type": "application/json", "user-agent": wanted };
    const sending = httpRequest(`${base}/v1/messages`, { method: "POST", headers, agent }, (response) => {
      let firstByteMs = Number.NaN;
      response.once("data", () => {
        firstByteMs = performance.now() - begun;
      });
      response.resume();
      response.once("end", () => resolve({ firstByteMs, totalMs: performance.now() - begun }));
      response.once("error", reject);
    });
    sending.once("error", reject);
    sending.end(JSON.stringify({ model: "bench", messages: [{ role: "user", content: "x".repeat(2_000) }] }));
  });
}

async function listening(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
}

async function close(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}
