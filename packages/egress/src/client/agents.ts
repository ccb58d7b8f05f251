import { type AgentOptions, Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent, type AgentOptions as HttpsAgentOptions } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type AgentGuard, directWay, openWay } from "./connect.js";

type Done = (error: Error | null, stream: Duplex) => void;
/** What an agent of Node gives to `createConnection`. */
interface Destination {
  readonly host?: string | null | undefined;
  readonly port?: number | string | null | undefined;
}

/** Agents of `node:http` and `node:https`, whose connections are all guarded. `close` them with `destroy`. */
export function guardedAgents(
  guard: AgentGuard,
  options: HttpsAgentOptions = {},
): { readonly http: HttpAgent; readonly https: HttpsAgent } {
  return { http: new GuardedHttpAgent(guard, options), https: new GuardedHttpsAgent(guard, options) };
}

class GuardedHttpAgent extends HttpAgent {
  readonly #guard: AgentGuard;

  constructor(guard: AgentGuard, options: AgentOptions) {
    super(options);
    this.#guard = guard;
  }

  override createConnection(given: Destination, done?: Done): Duplex | null | undefined {
    return connectBy(
      this.#guard,
      given,
      (lookup) => super.createConnection({ ...given, ...lookup }),
      (socket) => socket,
      done,
    );
  }
}

class GuardedHttpsAgent extends HttpsAgent {
  readonly #guard: AgentGuard;

  constructor(guard: AgentGuard, options: HttpsAgentOptions) {
    // Whatever NODE_TLS_REJECT_UNAUTHORIZED says.
    super({ rejectUnauthorized: true, ...options });
    this.#guard = guard;
  }

  override createConnection(given: Destination, done?: Done): Duplex | null | undefined {
    return connectBy(
      this.#guard,
      given,
      (lookup) => super.createConnection({ ...given, ...lookup }),
      (socket) => super.createConnection(Object.assign({}, given, { socket })),
      done,
    );
  }
}

function connectBy(
  guard: AgentGuard,
  { host, port }: Destination,
  direct: (options: object) => Duplex | null | undefined,
  over: (socket: Socket) => Duplex | null | undefined,
  done: Done | undefined,
): Duplex | null | undefined {
  // Node's type requires a stream even if there is none.
  const fail = (error: Error) => (done as ((error: Error) => void) | undefined)?.(error);
  const name = host ?? "localhost";
  if (guard.upstreamProxy === undefined) {
    try {
      const stream = direct(directWay(name, Number(port), guard));
      if (stream != null) guard.onConnection?.(stream);
      return stream;
    } catch (error) {
      process.nextTick(fail, error);
      return undefined;
    }
  }
  openWay(name, Number(port), guard)
    .then((way) => {
      const stream = "socket" in way ? over(way.socket) : direct(way);
      if (stream == null) return;
      guard.onConnection?.(stream);
      done?.(null, stream);
    })
    .catch(fail);
  return undefined;
}
