import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import type { McpServer, Publication } from "@ambit/core/plugin";
import { listening } from "@ambit/fakes/listening";
import { test as base, describe, expect, onTestFinished } from "vitest";
import { configSchema } from "../src/config.js";
import { HttpToolSource } from "../src/http-source.js";
import { StdioToolSource } from "../src/stdio-source.js";
import { httpServer, TestScope } from "./support/runs.js";

const config = configSchema.parse({ allowedRanges: ["127.0.0.0/8"], loopbackWithoutTls: true });
const program = fileURLToPath(new URL("support/costly-server.mjs", import.meta.url));

/** How a server sends its messages. */
type Form = "document" | "stream" | "stdio";

const test = base.extend<{ connect: (form: Form, sends: object) => Promise<Publication> }>({
  connect: async ({ task: _ }, use) => {
    const scope = new TestScope();
    await use(async (form, sends) => {
      if (form === "stdio") {
        const connection: McpServer["connection"] = {
          type: "stdio",
          command: "node",
          args: [program],
          env: { SENDS: JSON.stringify(sends) },
        };
        return await new StdioToolSource(config).connect({ name: "remote", connection }, scope);
      }
      const url = await serving(form, sends);
      return await new HttpToolSource(config).connect(httpServer(url), scope);
    });
    await scope.close();
    await Promise.all(scope.exits);
  },
});

/** The same server over HTTP. */
async function serving(form: "document" | "stream", sends: object): Promise<string> {
  const { answerTo } = await import(program);
  const server = createServer(async (request, response) => {
    if (request.method !== "POST") return void response.writeHead(405).end();
    const answer: string | undefined = answerTo(await text(request), sends);
    if (answer === undefined) return void response.writeHead(202).end();
    const type = form === "document" ? "application/json" : "text/event-stream";
    response.writeHead(200, { "content-type": type });
    response.end(form === "document" ? answer : `: hello\r\nevent: message\r\ndata: ${answer}\r\n\r\n`);
  });
  return `http://127.0.0.1:${await listening(server, onTestFinished)}/mcp`;
}

const signal = new AbortController().signal;
const forms = ["document", "stream", "stdio"] as const;

describe.each(forms)("a message of an MCP server, as a %s", (form) => {
  test("is passed on within the limits", async ({ connect }) => {
    const publication = await connect(form, { tools: 1_000 });
    expect(publication.tools).toHaveLength(1_000);
    expect(await publication.call({ name: "t0", arguments: {}, signal })).toEqual({
      output: "done",
      isError: false,
    });
  });

  test("with 200,000 tools fails the run before it is parsed", async ({ connect }) => {
    await expect(connect(form, { tools: 200_000 })).rejects.toThrow(
      /^MCP server 'remote' sent a message (that holds more than 100,000 values \(mcp-client's maxMessageValues\)|of more than 8,388,608 bytes \(mcp-client's maxMessageBytes\)), so its tools/,
    );
  });

  test("with tools on many pages fails the run", async ({ connect }) => {
    await expect(connect(form, { tools: 10_000, pages: 18 })).rejects.toThrow(
      "lists tools of more than 200,000 values",
    );
  });

  test("with more tools than a run may have fails the run", async ({ connect }) => {
    await expect(connect(form, { tools: 1_001 })).rejects.toThrow(
      "lists 1,001 tools, and a run has at most 1,000: name those that it needs in the server's policy.tools",
    );
  });

  test("with content that has no type fails its call, before the SDK checks it", async ({ connect }) => {
    const publication = await connect(form, { tools: 1, blocks: 20_000, block: {} });
    const { output, isError } = await publication.call({ name: "t0", arguments: {}, signal });
    expect(isError).toBe(true);
    if (form !== "stdio") expect(output).toContain("it sent a result with content that has no type");
  });

  test("of many values becomes one text for the SDK", async ({ connect }) => {
    const publication = await connect(form, { tools: 1, blocks: 15_000 });
    const { output, isError } = await publication.call({ name: "t0", arguments: {}, signal });
    expect(isError).toBe(false);
    expect(output).toBe(Array(15_000).fill("done").join("\n"));
  });

  test("with many values fails its call only", async ({ connect }) => {
    const publication = await connect(form, { tools: 1, values: 300_000 });
    const { output, isError } = await publication.call({ name: "t0", arguments: {}, signal });
    expect(isError).toBe(true);
    if (form !== "stdio") expect(output).toContain("it sent a message that holds more than 100,000 values");
  });
});
