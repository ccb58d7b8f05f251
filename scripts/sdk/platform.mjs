// The platform's API, as far as the SDK and the runner call it: secrets, tools, the model gateway, traces.
import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { text } from "node:stream/consumers";

const toolkitVersion = "20260901_00";
const catalog = [
  { key: "LIST_ISSUES", name: "List issues", read_only: true },
  { key: "CREATE_ISSUE", name: "Create an issue", read_only: false },
  { key: "DELETE_REPO", name: "Delete a repository", read_only: false },
];

/**
 * @typedef {object} Platform
 * @property {string} origin
 * @property {{ name: string, arguments: unknown, context: unknown }[]} calls of `POST /api/tools/call`
 * @property {number} traces exports of spans that arrived
 * @property {string[]} gatewayCredentials that came with requests to the model gateway
 * @property {boolean} hasGateway whether models are reached over its gateway
 * @property {{ address: string, replica: string } | undefined} pod the runner that had every session last
 * @property {string[]} unknown requests that it doesn't know
 * @property {() => void} close
 */

/**
 * @param {{ modelUrl: string, tls: { key: string, cert: string } }} options
 * @returns {Promise<Platform>}
 */
export async function startPlatform({ modelUrl, tls }) {
  const model = createTlsServer(
    tls,
    (request, response) => void forward(request, response, modelUrl, request.url ?? ""),
  );
  const modelPort = await listen(model);
  /** @type {Platform} */
  const platform = {
    origin: "",
    calls: [],
    traces: 0,
    gatewayCredentials: [],
    hasGateway: false,
    pod: undefined,
    unknown: [],
    close: () => {
      for (const one of [server, model]) {
        one.closeAllConnections();
        one.close();
      }
    },
  };
  const server = createServer(async (request, response) => {
    const path = (request.url ?? "").split("?")[0] ?? "";
    const answer = (/** @type {unknown} */ body, status = 200) => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(body));
    };
    if (path.startsWith("/api/gateways/llms/custom/")) {
      platform.gatewayCredentials.push(String(request.headers["x-ag-credentials"]));
      return forward(request, response, modelUrl, path.replace(/^\/api\/gateways\/llms\/custom\/[^/]+/, ""));
    }
    // The SDK's service may be ended while it sends its traces.
    const body = await text(request).catch(() => undefined);
    if (body === undefined) return response.destroy();
    if (path === "/api/otlp/v1/traces") {
      platform.traces += 1;
      response.writeHead(200, { "content-type": "application/x-protobuf" });
      return response.end();
    }
    const given = body.startsWith("{") ? JSON.parse(body) : {};
    switch (path) {
      case "/api/gateways/llms/resolve":
        // An API without this route, as before 0.119.
        if (!platform.hasGateway) return answer({ detail: "Not Found" }, 404);
        return answer({
          connection: {
            provider_key: "openai",
            deployment_kind: "custom",
            namespace: "custom",
            name: "scripted",
            model: "gpt-5.5",
          },
        });
      case "/api/sessions/streams/":
        if (platform.pod === undefined) return answer({ detail: "Not Found" }, 404);
        return answer({ runner_address: platform.pod.address, runner_replica_id: platform.pod.replica });
      case "/api/sessions/turns/query":
        return answer({ turns: [] });
      case "/api/gateways/credentials":
        return answer({ credentials: "Secret gateway-credential-1" });
      case "/api/secrets/":
        return answer([secret(`https://127.0.0.1:${modelPort}/v1`)]);
      case "/api/tools/resolve":
        return answer(resolved(given.tools));
      case "/api/tools/call": {
        const { id, function: called } = given.data;
        platform.calls.push({ name: called.name, arguments: called.arguments, context: given.context });
        const content = JSON.stringify(contentOf(called.name, called.arguments));
        return answer({
          call: { id, status: { code: "STATUS_CODE_OK" }, data: { role: "tool", tool_call_id: id, content } },
        });
      }
      default:
        platform.unknown.push(`${request.method} ${path}`);
        return answer({ detail: "Not Found" }, 404);
    }
  });
  platform.origin = `http://127.0.0.1:${await listen(server)}`;
  return platform;
}

/** @param {string} url */
function secret(url) {
  return {
    id: "0192aaaa-0000-7000-8000-0000000000c1",
    slug: "scripted",
    kind: "custom_provider",
    header: { name: "scripted" },
    data: {
      kind: "custom",
      provider_slug: "scripted",
      provider: { url, key: "test-key" },
      models: [{ slug: "gpt-5.5" }],
      model_keys: ["scripted/custom/gpt-5.5"],
    },
  };
}

/** @param {any[]} tools */
function resolved(tools) {
  const connections = tools.filter(({ type }) => type === "gateway_connection");
  const single = tools.filter(({ type }) => type !== "gateway_connection");
  return {
    count: tools.length,
    builtins: [],
    gateway_connections: connections.map(({ connection }) => ({
      integration: connection.integration,
      toolkit_version: toolkitVersion,
      tools: catalog,
    })),
    custom: single.map(({ integration, action, connection }) => ({
      name: action.toLowerCase(),
      description: action,
      input_schema: { type: "object", properties: { title: { type: "string" } } },
      call_ref: `tools__composio__${integration}__${action}__${connection}`,
      read_only: action === "LIST_ISSUES",
    })),
  };
}

/** @param {string} name @param {any} given */
function contentOf(name, given) {
  if (name !== "gateway.search") return { done: given };
  const results = catalog.map(({ key, name: title }) => ({
    integration: "github",
    tool: key,
    name: title,
    description: `${title}; unlike DELETE_REPO`,
    input_schema: { type: "object" },
  }));
  return { results };
}

/** @param {import("node:http").IncomingMessage} request @param {import("node:http").ServerResponse} response */
async function forward(request, response, /** @type {string} */ origin, /** @type {string} */ path) {
  try {
    const body = await text(request);
    const authorization = request.headers.authorization ?? "Bearer test-key";
    const answered = await fetch(`${origin}${path}`, {
      method: request.method ?? "POST",
      headers: { "content-type": "application/json", authorization },
      ...(request.method === "GET" ? {} : { body }),
    });
    response.writeHead(answered.status, {
      "content-type": answered.headers.get("content-type") ?? "text/plain",
    });
    for await (const chunk of answered.body ?? []) response.write(chunk);
    response.end();
  } catch {
    response.destroy();
  }
}

/** @param {import("node:net").Server} server @returns {Promise<number>} */
function listen(server) {
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : 0);
    });
  });
}
