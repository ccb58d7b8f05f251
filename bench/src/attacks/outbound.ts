import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { promisify } from "node:util";
import { constants, zstdCompress } from "node:zlib";
import { HttpCaller } from "../http.js";
import { demoRequest } from "../subjects/server/requests.js";
import { count, type LoadAttack, repeatedly } from "./attack.js";
import { listening, writeAll } from "./listening.js";
import { emptyObjects } from "./payloads.js";
import { hostileRequest, readRun } from "./runs.js";

const megabyte = 1_048_576;

/** A model that answers with endless events, or one document of as many values. */
export const modelAnswers: LoadAttack = {
  run: async (target, tally, signal) => {
    const event = Buffer.from(
      `data: {"type":"content_block_delta","usage":{"output_tokens":${emptyObjects(9)}}}\n\n`.repeat(600),
    );
    const document = Buffer.from(emptyObjects(30_000).replaceAll("]", ",").slice(1));
    const server = createServer(async (request, response) => {
      for await (const _part of request);
      count(tally, "answers");
      const isStream = (tally.answers ?? 0) % 2 === 0;
      response.writeHead(200, { "content-type": isStream ? "text/event-stream" : "application/json" });
      if (!isStream) response.write('{"content":[');
      await writeAll(response, isStream ? event : document, 16 * megabyte);
    });
    const baseUrl = `http://127.0.0.1:${await listening(server)}`;
    const modelConnection = {
      provider: "anthropic",
      endpoint: { baseUrl },
      credentials: [
        { binding: { kind: "environment", name: "HOSTILE_KEY" }, value: "sk-hostile-0123456789" },
      ],
    };
    const body = hostileRequest(
      { attack: "model", requests: 16, path: "/" },
      { harness: "hostile_model", modelConnection },
    );
    const caller = new HttpCaller(target.url, target.token);
    await repeatedly(4, async () => void (await readRun(caller, body, tally, signal)), tally, signal);
    caller.close();
    server.closeAllConnections();
    server.close();
  },
};

/** A credential's host whose answers are compressed, and expand to much more. */
export const encodedAnswers: LoadAttack = {
  run: async (target, tally, signal) => {
    const { host } = target;
    if (host === undefined) throw new Error("this machine has no name for its loopback address");
    const params = { [constants.ZSTD_c_windowLog]: 23, [constants.ZSTD_c_compressionLevel]: 1 };
    const text = Buffer.alloc(64 * megabyte, "what a server says, with sk-so and other beginnings ");
    const compressed = await promisify(zstdCompress)(text, { params });
    const server = createTlsServer({ key: host.key, cert: host.certificate }, (_request, response) => {
      count(tally, "answers");
      response.writeHead(200, { "content-encoding": "zstd" }).end(compressed);
    });
    const port = await listening(server);
    const hosts = [`${host.name}:${port}`];
    const body = hostileRequest(
      { attack: "fetch", requests: 10, host: host.name, port, path: "/" },
      {
        sandboxPermission: { network: { mode: "allowlist", allowlist: [...hosts, `127.0.0.1/32:${port}`] } },
        toolCallback: undefined,
        credentials: [{ name: "HOSTILE_TOKEN", value: "sk-so-0123456789", hosts, as: "bearer" }],
      },
    );
    const caller = new HttpCaller(target.url, target.token);
    await repeatedly(3, async () => void (await readRun(caller, body, tally, signal)), tally, signal);
    caller.close();
    server.closeAllConnections();
    server.close();
  },
};

/** Characters of all values of a request, and of one. */
const allCharacters = 32_000;
const oneCharacter = 4_000;

/** Values that a search begins everywhere, and finishes late; each run has others. */
export const chosenValues: LoadAttack = {
  run: async (target, tally, signal) => {
    const caller = new HttpCaller(target.url, target.token);
    let turn = 0;
    const step = async () => {
      turn += 1;
      const value = (at: number) =>
        `${"a".repeat(oneCharacter - 10)}${String(turn * 10 + at).padStart(10, "0")}`;
      const env = Object.fromEntries(
        Array.from({ length: Math.floor(allCharacters / oneCharacter) }, (_, at) => [`K${at}`, value(at)]),
      );
      const customTools = [{ name: "answers", callRef: "answers", inputSchema: { type: "object" }, env }];
      const toolCallback = { endpoint: "http://127.0.0.1:9/" };
      const body = demoRequest(`stream 200 ${"a".repeat(10_000)}`, { customTools, toolCallback });
      const last = await readRun(caller, body, tally, signal);
      if (!last.includes('"ok":true')) throw new Error(last);
      count(tally, "runs");
    };
    await repeatedly(4, step, tally, signal);
    caller.close();
  },
};

/** A receiver of webhooks that answers without end. */
export const webhookAnswers: LoadAttack = {
  run: async (target, tally, signal) => {
    const piece = Buffer.from(emptyObjects(30_000));
    const server = createServer(async (request, response) => {
      for await (const _part of request);
      count(tally, "messages");
      response.writeHead(200, { "content-type": "application/json" });
      await writeAll(response, piece, 256 * megabyte);
    });
    const webhook = { url: `http://127.0.0.1:${await listening(server)}/` };
    const body = demoRequest("say hello", { webhook });
    const caller = new HttpCaller(target.url, target.token);
    await repeatedly(4, async () => void (await readRun(caller, body, tally, signal)), tally, signal);
    caller.close();
    server.closeAllConnections();
    server.close();
  },
};
