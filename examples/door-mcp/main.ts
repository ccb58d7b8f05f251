// node main.ts "run ls"
import { stdin, stdout } from "node:process";
import { createInterface } from "node:readline/promises";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const { AMBIT_URL = "http://127.0.0.1:8765", AMBIT_TOKEN = "" } = process.env;
const terminal = createInterface({ input: stdin });
// They may come before their question; the end of the input is a no.
const answerLines = terminal[Symbol.asyncIterator]();
const client = new Client(
  { name: "ambit-example", version: "1.0.0" },
  { versionNegotiation: { mode: "auto" }, capabilities: { elicitation: {} } },
);

// What the run asks its user.
client.setRequestHandler("elicitation/create", async ({ params }) => {
  stdout.write(`${params.message} Allow it? [y/n] `);
  const approved = /^y/i.test((await answerLines.next()).value ?? "");
  return { action: "accept", content: { approved } };
});

const requestInit = { headers: { authorization: `Bearer ${AMBIT_TOKEN}` } };
await client.connect(new StreamableHTTPClientTransport(new URL(`${AMBIT_URL}/mcp`), { requestInit }));

const prompt = process.argv.slice(2).join("\n");
const result = await client.callTool(
  { name: "run_agent", arguments: { prompt } },
  { onprogress: ({ message }) => console.error(`… ${message}`), timeout: 3_600_000 },
);
for (const block of result.content) if (block.type === "text") console.log(block.text);
await client.close();
terminal.close();
