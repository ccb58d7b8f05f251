import { type DoorCall, messageOf } from "@ambit/core/plugin";
import { createMcpHandler, isLegacyRequest, PARSE_ERROR } from "@modelcontextprotocol/server";
import { agentServer } from "./agent-server.js";
import type { DoorConfig } from "./config.js";
import { problem, Sessions } from "./sessions.js";

/** The door over HTTP: both generations of the protocol at one address. */
export class Endpoint {
  readonly #config: DoorConfig;
  readonly #version: string;
  readonly #sessions: Sessions;

  constructor(config: DoorConfig, version: string) {
    this.#config = config;
    this.#version = version;
    this.#sessions = new Sessions(config, version);
  }

  async post(call: DoorCall): Promise<Response> {
    let body: unknown;
    try {
      body = await call.json();
    } catch (error) {
      return problem(400, PARSE_ERROR, messageOf(error));
    }
    if (await isLegacyRequest(call.request, body)) return await this.#sessions.serve(call, body);
    const config = this.#config;
    const version = this.#version;
    const caller = { fetch: call.fetch, kind: call.caller, opensUrls: true };
    // One for each request: nothing of one caller is in reach of another.
    const handler = createMcpHandler(
      () => agentServer({ config, version, callerOf: () => caller }, "modern"),
      { legacy: "reject", responseMode: "sse", keepAliveMs: config.heartbeatMs },
    );
    return await handler.fetch(call.request, { parsedBody: body });
  }

  /** What the client of a session listens to, and its end. */
  async session(call: DoorCall): Promise<Response> {
    return await this.#sessions.serve(call);
  }
}
