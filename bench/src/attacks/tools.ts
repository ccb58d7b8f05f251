import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text as textOf } from "node:stream/consumers";
import { z } from "zod";
import { HttpCaller } from "../http.js";
import { demoRequest } from "../subjects/server/requests.js";
import { count, type LoadAttack, repeatedly, type Tally } from "./attack.js";
import { listening } from "./listening.js";
import { longText, manyValues } from "./payloads.js";
import { readRun } from "./runs.js";

/** Runs at one time, and the calls of each. */
const runs = 4;
const calls = 8;

const bodies = {
  values: Array.from({ length: 3 }, (_, turn) => manyValues(90_000, turn)),
  text: JSON.stringify(longText(7_500_000)),
};

/** Values and texts in turn. */
function content(turn: number): string {
  return turn % 2 === 0 ? (bodies.values[(turn / 2) % 3] ?? "[]") : bodies.text;
}

const callAll = Array.from({ length: calls }, () => "& call answers {}").join("\n");

const callSchema = z.object({ data: z.object({ id: z.string() }) });

/** A platform whose callbacks answer as much as they may. */
export const callbackAnswers: LoadAttack = {
  run: async (target, tally, signal) => {
    const server = createServer((request, response) => void answerCall(request, response, tally));
    const toolCallback = {
      endpoint: `http://127.0.0.1:${await listening(server)}/`,
      authorization: "Bearer sk-callbacks",
    };
    const customTools = [{ name: "answers", callRef: "answers", inputSchema: { type: "object" } }];
    const body = demoRequest(callAll, { toolCallback, customTools });
    const caller = new HttpCaller(target.url, target.token);
    await repeatedly(runs, async () => void (await readRun(caller, body, tally, signal)), tally, signal);
    caller.close();
    server.closeAllConnections();
    server.close();
  },
};

async function answerCall(request: IncomingMessage, response: ServerResponse, tally: Tally): Promise<void> {
  const { id } = callSchema.parse(JSON.parse(await textOf(request))).data;
  count(tally, "answers");
  response.setHeader("content-type", "application/json");
  response.end(
    `{"call":{"id":"${id}","status":{"code":"STATUS_CODE_OK"},"data":{"content":${content(tally.answers ?? 0)}}}}`,
  );
}

const messageSchema = z.looseObject({
  id: z.union([z.string(), z.number()]).optional(),
  method: z.string().optional(),
  params: z.looseObject({ protocolVersion: z.string().optional() }).optional(),
});

/** An MCP server: of one tool whose results are as large as they may be, or of a very long list of tools. */
function mcpAttack(what: "results" | "lists", tools: string, lanes: number): LoadAttack {
  return {
    run: async (target, tally, signal) => {
      const server = createServer(
        (request, response) => void answerMcp(request, response, what, tools, tally),
      );
      const connection = { type: "http", url: `http://127.0.0.1:${await listening(server)}/mcp` };
      const mcpServers = [{ name: "hostile", connection }];
      const body = demoRequest(callAll, { mcpServers });
      const caller = new HttpCaller(target.url, target.token);
      await repeatedly(lanes, async () => void (await readRun(caller, body, tally, signal)), tally, signal);
      caller.close();
      server.closeAllConnections();
      server.close();
    },
  };
}

async function answerMcp(
  request: IncomingMessage,
  response: ServerResponse,
  what: "results" | "lists",
  tools: string,
  tally: Tally,
): Promise<void> {
  if (request.method !== "POST") return void response.writeHead(405).end();
  const { id, method, params } = messageSchema.parse(JSON.parse(await textOf(request)));
  if (id === undefined) return void response.writeHead(202).end();
  const reply = (result: string) => {
    response.setHeader("content-type", "application/json");
    response.end(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},${result}}`);
  };
  switch (method) {
    case "initialize": {
      const protocolVersion = params?.protocolVersion ?? "2025-06-18";
      const serverInfo = { name: "hostile", version: "1" };
      return reply(
        `"result":${JSON.stringify({ protocolVersion, serverInfo, capabilities: { tools: {} } })}`,
      );
    }
    case "tools/list":
      if (what === "lists") count(tally, "lists");
      return reply(`"result":{"tools":${tools}}`);
    case "tools/call": {
      count(tally, "results");
      const large = content(tally.results ?? 0);
      const isText = large.startsWith('"');
      return reply(
        isText
          ? `"result":{"content":[{"type":"text","text":${large}}]}`
          : `"result":{"content":[],"structuredContent":{"all":${large}}}`,
      );
    }
    default:
      return reply('"error":{"code":-32601,"message":"unknown"}');
  }
}

const oneTool = '[{"name":"answers","inputSchema":{"type":"object"}}]';
/** Few values each, so that as many tools as possible pass the limit on values. */
const maxTools = `[${Array.from({ length: 24_000 }, (_, index) => `{"name":"t${index}","inputSchema":{"type":"object"}}`).join()}]`;
const tooManyTools = `[${Array.from({ length: 200_000 }, (_, index) => `{"name":"t${index}","inputSchema":{"type":"object"}}`).join()}]`;

export const mcpResults = mcpAttack("results", oneTool, runs);
export const mcpLists = mcpAttack("lists", maxTools, 8);
export const mcpTooLongLists = mcpAttack("lists", tooManyTools, 8);
