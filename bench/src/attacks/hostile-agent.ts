/**
 * An ACP agent that does what its prompt says, to cost the server that runs it. It writes its messages itself: the SDK
 * would refuse to send them.
 */
import { once } from "node:events";
import { request as requestHttp } from "node:http";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { connect as connectTls } from "node:tls";
import { z } from "zod";
import { longText, manyValues } from "./payloads.js";

const instructionSchema = z.discriminatedUnion("attack", [
  /** Messages of many values: as a call's input, its output, a plan, and an update of unknown kind. */
  z.object({ attack: z.literal("values"), messages: z.int(), values: z.int() }),
  /** Messages of long texts: said, thought, and as a call's output. */
  z.object({ attack: z.literal("texts"), messages: z.int(), characters: z.int() }),
  /** Requests to its model, at once. */
  z.object({ attack: z.literal("model"), requests: z.int(), path: z.string() }),
  /** Requests to a credential's host through the proxy, at once. */
  z.object({
    attack: z.literal("fetch"),
    requests: z.int(),
    host: z.string(),
    port: z.int(),
    path: z.string(),
  }),
]);
export type Instruction = z.infer<typeof instructionSchema>;

const messageSchema = z.looseObject({
  id: z.union([z.string(), z.number()]).optional(),
  method: z.string().optional(),
  params: z
    .looseObject({ prompt: z.array(z.looseObject({ text: z.string().optional() })).optional() })
    .optional(),
});

const sessionId = "hostile";

async function write(line: string): Promise<void> {
  if (!process.stdout.write(`${line}\n`)) await once(process.stdout, "drain");
}

const update = (fields: string) =>
  write(
    `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"${sessionId}","update":{${fields}}}}`,
  );

async function sendValues(messages: number, values: number): Promise<void> {
  for (let turn = 0; turn < messages; turn += 1) {
    const value = manyValues(values, turn);
    // The second message of each four is the result of the first one's call.
    const call = `"toolCallId":"call-${Math.floor(turn / 4)}"`;
    switch (turn % 4) {
      case 0:
        await update(
          `"sessionUpdate":"tool_call",${call},"title":"Run","status":"in_progress","rawInput":{"all":${value}}`,
        );
        break;
      case 1:
        await update(
          `"sessionUpdate":"tool_call_update",${call},"title":"Run","status":"completed","rawOutput":{"all":${value}}`,
        );
        break;
      case 2:
        await update(`"sessionUpdate":"plan","entries":${value}`);
        break;
      default:
        await update(`"sessionUpdate":"unheard_of","all":${value}`);
    }
  }
}

async function sendTexts(messages: number, characters: number): Promise<void> {
  const text = longText(characters);
  const content = `"content":{"type":"text","text":${JSON.stringify(text)}}`;
  for (let turn = 0; turn < messages; turn += 1) {
    const call = `"toolCallId":"call-${turn}"`;
    switch (turn % 3) {
      case 0:
        await update(`"sessionUpdate":"agent_message_chunk",${content}`);
        break;
      case 1:
        await update(`"sessionUpdate":"agent_thought_chunk",${content}`);
        break;
      default:
        await update(
          `"sessionUpdate":"tool_call_update",${call},"title":"Run","status":"completed","content":[{"type":"content",${content}}]`,
        );
    }
  }
}

async function askModel(requests: number, path: string): Promise<void> {
  const { HOSTILE_BASE_URL: baseUrl = "", HOSTILE_KEY: key = "" } = process.env;
  const body = JSON.stringify({
    model: "hostile",
    max_tokens: 9,
    messages: [{ role: "user", content: path }],
  });
  const headers = { "x-api-key": key, "content-type": "application/json" };
  const ask = async () => {
    const sent = requestHttp(`${baseUrl}/v1/messages`, { method: "POST", headers });
    sent.end(body);
    const [response] = await once(sent, "response");
    for await (const _chunk of response);
  };
  await Promise.allSettled(Array.from({ length: requests }, ask));
}

async function fetchThroughProxy({
  requests,
  host,
  port,
  path,
}: Instruction & { attack: "fetch" }): Promise<void> {
  const proxy = new URL(process.env.HTTPS_PROXY ?? process.env.https_proxy ?? "");
  const ask = async () => {
    const socket = connect({ host: proxy.hostname, port: Number(proxy.port) });
    socket.write(`CONNECT ${host}:${port} HTTP/1.1\r\nHost: ${host}:${port}\r\n\r\n`);
    await once(socket, "data");
    const tls = connectTls({ socket, servername: host, rejectUnauthorized: false });
    tls.write(
      `GET ${path} HTTP/1.1\r\nHost: ${host}:${port}\r\nAuthorization: Bearer ${process.env.HOSTILE_TOKEN}\r\nConnection: close\r\n\r\n`,
    );
    for await (const _chunk of tls);
  };
  await Promise.allSettled(Array.from({ length: requests }, ask));
}

async function obey(instruction: Instruction): Promise<void> {
  switch (instruction.attack) {
    case "values":
      return sendValues(instruction.messages, instruction.values);
    case "texts":
      return sendTexts(instruction.messages, instruction.characters);
    case "model":
      return askModel(instruction.requests, instruction.path);
    case "fetch":
      return fetchThroughProxy(instruction);
  }
}

async function answer(line: string): Promise<void> {
  const { id, method, params } = messageSchema.parse(JSON.parse(line));
  if (id === undefined || method === undefined) return;
  const reply = (result: object) => write(JSON.stringify({ jsonrpc: "2.0", id, result }));
  switch (method) {
    case "initialize":
      return reply({ protocolVersion: 1, agentCapabilities: {} });
    case "session/new":
      return reply({ sessionId });
    case "session/prompt": {
      const text = params?.prompt?.find((block) => block.text !== undefined)?.text ?? "";
      await obey(instructionSchema.parse(JSON.parse(text)));
      await update('"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"done"}');
      return reply({ stopReason: "end_turn" });
    }
    default:
      return write(JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32_601, message: "unknown" } }));
  }
}

process.stdout.on("error", () => process.exit());
createInterface({ input: process.stdin })
  .on("line", (line) => void answer(line))
  .on("close", () => process.exit());
