import { fileURLToPath } from "node:url";
import type { McpServer } from "@ambit/core/plugin";
import { expect, test } from "vitest";
import { configSchema } from "../src/config.js";
import { StdioToolSource } from "../src/stdio-source.js";
import { TestScope } from "./support/runs.js";

const program = fileURLToPath(new URL("support/stdio-server.mjs", import.meta.url));
const signal = new AbortController().signal;

function stdioServer(command: string, args: string[], env?: Record<string, string>): McpServer {
  return {
    name: "local",
    connection: { type: "stdio", command, args, ...(env === undefined ? {} : { env }) },
  };
}

test("a server in the sandbox: stray output is skipped, its environment is private", async () => {
  process.env.AMBIT_CANARY = "canary";
  const scope = new TestScope();
  const source = new StdioToolSource(configSchema.parse({}));
  // Longer than a pipe holds: its response arrives in several pieces.
  const token = "ü".repeat(50_000);
  const publication = await source.connect(stdioServer("node", [program], { TOKEN: token }), scope);
  delete process.env.AMBIT_CANARY;
  expect(publication.tools.map(({ name }) => name)).toEqual(["environment"]);
  const { output } = await publication.call({ name: "environment", arguments: {}, signal });
  const { TOKEN, AMBIT_CANARY } = JSON.parse(output);
  expect({ TOKEN, AMBIT_CANARY }).toEqual({ TOKEN: token, AMBIT_CANARY: undefined });
  expect(scope.commands).toMatchObject([{ role: "tool" }]);
  await scope.close();
  await Promise.all(scope.exits);
});

test.each([
  ["ends at once", ["-e", "process.exit(1)"], /missing\.$/],
  [
    "reports why it ends",
    ["-e", "console.error('x'.repeat(5000) + '\\nno such package'); process.exit(1)"],
    /missing\. It wrote:\nno such package$/,
  ],
  [
    "sends an endless message",
    ["-e", "process.stdout.write('x'.repeat(3000)); setInterval(() => {}, 1000)"],
    /missing\.$/,
  ],
  [
    "sends a message of fewer characters than the limit, but more bytes",
    ["-e", "process.stdout.write('ü'.repeat(600)); setInterval(() => {}, 1000)"],
    /missing\.$/,
  ],
])("a server that %s fails the run, and nothing of it remains", async (_what, args, message) => {
  const scope = new TestScope();
  const source = new StdioToolSource(configSchema.parse({ maxMessageBytes: 1_000 }));
  await expect(source.connect(stdioServer("node", args), scope)).rejects.toThrow(message);
  await scope.close();
  await Promise.all(scope.exits);
});
