#!/usr/bin/env node
import { parseArgs } from "node:util";
import { describeRequest } from "./describe-request.js";
import { startModelServer } from "./server.js";

const USAGE = `Usage: ambit-model-server [--port N]
Prints its address on stdout and one line for each request on stderr. Ends on SIGINT or SIGTERM.`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { port: { type: "string", default: "0" }, help: { type: "boolean", default: false } },
  });
  if (values.help) {
    console.log(USAGE);
    return;
  }
  const port = Number(values.port);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new Error(`--port ${values.port}: use a whole number from 0 (any free port) to 65535`);
  }
  const server = await startModelServer({
    port,
    record: false,
    onFinished: (request) => console.error(describeRequest(request)),
  });
  console.log(server.url);
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void server.close());
}

main().catch((error: unknown) => {
  console.error(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`);
  process.exitCode = 1;
});
