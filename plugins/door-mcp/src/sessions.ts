import { randomUUID } from "node:crypto";
import type { DoorCall } from "@ambit/core/plugin";
import {
  isInitializeRequest,
  type Server,
  type ServerContext,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { type AgentService, agentServer } from "./agent-server.js";
import type { DoorConfig } from "./config.js";
import type { Caller } from "./runs.js";

/** One connection of a client of the 2025 protocols, over many HTTP requests. */
interface Session {
  readonly transport: WebStandardStreamableHTTPServerTransport;
  readonly server: Server;
  /** The id of the caller that opened it: no other one is served. */
  readonly ownerId: string;
  usedAtMs: number;
  /** Calls that aren't answered yet. */
  calls: number;
}

/** Sessions of all callers together. A server that has them all in use opens no more. */
const maxSessions = 10_000;

/**
 * The sessions of the 2025 protocols, in which a server asks its client: the client's answer is an HTTP request of its own,
 * which only the process has a use for that asked. They hold nothing of a run: its task is found by its id in any session.
 */
export class Sessions {
  readonly #config: DoorConfig;
  readonly #version: string;
  readonly #nowMs: () => number;
  /** Those used least recently come first. */
  readonly #byId = new Map<string, Session>();
  readonly #callers = new WeakMap<Request, Caller>();

  constructor(config: DoorConfig, version: string, nowMs: () => number = () => performance.now()) {
    this.#config = config;
    this.#version = version;
    this.#nowMs = nowMs;
  }

  /** @param body of a POST, parsed */
  async serve({ request, fetch, caller, callerId }: DoorCall, body?: unknown): Promise<Response> {
    const id = request.headers.get("mcp-session-id");
    const session =
      id === null && isInitializeRequest(body) ? await this.#open(callerId) : this.#find(id ?? "", callerId);
    if (session === undefined)
      return id === null
        ? problem(400, -32_000, "The header Mcp-Session-Id is missing: begin with `initialize`.")
        : problem(404, -32_001, "There is no such session: begin with `initialize` again.");
    if (session === "full")
      return problem(503, -32_000, "Too many sessions are open.", { "retry-after": "60" });
    this.#callers.set(request, { fetch, kind: caller, opensUrls: true });
    return await session.transport.handleRequest(request, body === undefined ? {} : { parsedBody: body });
  }

  get size(): number {
    return this.#byId.size;
  }

  #find(id: string, callerId: string): Session | undefined {
    const session = this.#byId.get(id);
    if (session?.ownerId !== callerId) return undefined;
    session.usedAtMs = this.#nowMs();
    this.#byId.delete(id);
    this.#byId.set(id, session);
    return session;
  }

  async #open(ownerId: string): Promise<Session | "full"> {
    this.#closeOld(ownerId);
    if (this.#byId.size >= maxSessions) return "full";
    const session: Session = {
      transport: new WebStandardStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        keepAliveMs: this.#config.heartbeatMs,
        onsessioninitialized: (id) => void this.#byId.set(id, session),
        onsessionclosed: (id) => void this.#byId.delete(id),
      }),
      server: agentServer(
        this.#serviceOf(() => session),
        "legacy",
      ),
      ownerId,
      usedAtMs: this.#nowMs(),
      calls: 0,
    };
    await session.server.connect(session.transport);
    return session;
  }

  #serviceOf(session: () => Session): AgentService {
    return {
      config: this.#config,
      version: this.#version,
      callerOf: ({ http }: ServerContext) => {
        const caller = http?.req === undefined ? undefined : this.#callers.get(http.req);
        if (caller === undefined) throw new TypeError("a message of MCP came without its request");
        return caller;
      },
      beginCall: () => {
        session().calls += 1;
        return {
          [Symbol.dispose]: () => {
            session().calls -= 1;
          },
        };
      },
    };
  }

  /** Ends sessions that were silent for too long, and of this owner those beyond its number. One with an open call stays. */
  #closeOld(ownerId: string): void {
    const idleSinceMs = this.#nowMs() - this.#config.sessionIdleMs;
    const all = [...this.#byId].filter(([, { calls }]) => calls === 0);
    const sessionsOfOwner = [...this.#byId].filter(([, session]) => session.ownerId === ownerId);
    const idle = all.filter(([, { usedAtMs }]) => usedAtMs < idleSinceMs);
    const tooMany = all
      .filter(([, session]) => session.ownerId === ownerId)
      .slice(0, Math.max(0, sessionsOfOwner.length + 1 - this.#config.maxSessionsPerCaller));
    for (const [id, session] of [...idle, ...tooMany]) {
      this.#byId.delete(id);
      // Nothing of it is under way: what its client still listens to ends here.
      session.server.close().catch(() => undefined);
    }
  }
}

export function problem(
  status: number,
  code: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return Response.json({ jsonrpc: "2.0", error: { code, message }, id: null }, { status, headers });
}
