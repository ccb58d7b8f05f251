import { Readable, Writable } from "node:stream";
import { finished } from "node:stream/promises";
import { parseArgs } from "node:util";
import type { StdioCall } from "@ambit/core/plugin";
import { messageOf, RequestInvalid } from "@ambit/core/plugin";
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import { agentServer } from "./agent-server.js";
import type { DoorConfig } from "./config.js";
import type { Caller } from "./runs.js";

/** Serves one client on standard input and output, until it leaves: `ambit door mcp --agent gemini`. */
export async function serveClient(call: StdioCall, config: DoorConfig, version: string): Promise<void> {
  const caller: Caller = { fetch: call.fetch, kind: "platform", opensUrls: false };
  const service = { config: configured(config, call.arguments), version, callerOf: () => caller };
  const input = Readable.fromWeb(call.input, { signal: call.signal });
  const transport = new StdioServerTransport(input, Writable.fromWeb(call.output));
  const connection = serveStdio(({ era }) => agentServer(service, era), { transport });
  // A client that leaves, and a signal to end, are no failures.
  await finished(input, { writable: false }).catch(() => undefined);
  await connection.close();
}

function configured(config: DoorConfig, args: readonly string[]): DoorConfig {
  const { agent, model } = optionsOf(args);
  const request = {
    ...config.request,
    ...(agent === undefined ? {} : { harness: agent }),
    ...(model === undefined ? {} : { model }),
  };
  return { ...config, request };
}

function optionsOf(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: { agent: { type: "string" }, model: { type: "string" } } })
      .values;
  } catch (error) {
    const message = `${messageOf(error)}: the door takes --agent and --model`;
    throw new RequestInvalid([{ path: "arguments", message }]);
  }
}
