import {
  type DeliveryScope,
  definePlugin,
  type FetchHandler,
  type Publication,
  requireBearer,
  type ToolDelivery,
} from "@ambit/core/plugin";
import { z } from "zod";

const requestSchema = z.object({
  id: z.union([z.string(), z.number()]).optional(),
  method: z.string(),
  params: z
    .object({
      protocolVersion: z.string().default("2025-06-18"),
      name: z.string().default(""),
      arguments: z.record(z.string(), z.json()).default({}),
    })
    .prefault({}),
});
type McpRequest = z.output<typeof requestSchema>;

export class Delivery implements ToolDelivery {
  readonly name = "sample";
  readonly site = "runner";
  readonly claims = [];

  touches(): ["network", "secrets"] {
    return ["network", "secrets"];
  }

  gaps() {
    return [];
  }

  async probe() {
    return [];
  }

  async publish(publication: Publication, scope: DeliveryScope) {
    let listed = false;
    const handle: FetchHandler = async (request) => {
      if (request.method !== "POST") return new Response(null, { status: 405 });
      const message = requestSchema.safeParse(await request.json());
      if (!message.success) return new Response("Not an MCP request", { status: 400 });
      const { id, method } = message.data;
      if (id === undefined) return new Response(null, { status: 202 }); // A notification.
      listed ||= method === "tools/list";
      const result = await answer(publication, message.data, request.signal);
      if (result !== undefined) return Response.json({ jsonrpc: "2.0", id, result });
      const error = { code: -32601, message: `Unknown method or tool: ${method}` };
      return Response.json({ jsonrpc: "2.0", id, error });
    };
    let serve: FetchHandler = () => new Response(null, { status: 503 });
    const exposure = await scope.sandbox.expose((request) => serve(request));
    scope.defer(() => exposure.close());
    serve = requireBearer(exposure.token, handle); // Once more here, in case the backend's own check fails.
    return {
      name: publication.name,
      url: `${exposure.url}/mcp`,
      headers: { Authorization: `Bearer ${exposure.token}` },
      listed: () => listed,
    };
  }
}

async function answer(
  { name, tools, call }: Publication,
  { id, method, params }: McpRequest,
  signal: AbortSignal,
) {
  switch (method) {
    case "initialize":
      return {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name, version: "1.0.0" },
      };
    case "ping":
      return {};
    case "tools/list":
      // Field by field: a tool's code, environment and references are nothing for the agent.
      return {
        tools: tools.map(({ name, description, inputSchema = { type: "object" }, readOnly }) => ({
          name,
          description,
          inputSchema,
          annotations: { readOnlyHint: readOnly },
        })),
      };
    case "tools/call": {
      if (!tools.some(({ name }) => name === params.name)) return undefined;
      const outcome = await call({ id: String(id), name: params.name, arguments: params.arguments, signal });
      return { content: [{ type: "text", text: outcome.output }], isError: outcome.isError };
    }
    default:
      return undefined;
  }
}

export default definePlugin({
  name: "ambit-sample",
  api: 1,
  config: z.strictObject({}),
  register: (registrar) => registrar.add("delivery", new Delivery()),
});
