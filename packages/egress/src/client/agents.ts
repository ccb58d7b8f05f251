import { type Agent, Agent as HttpAgent } from "node:http";
import { type AgentOptions, Agent as HttpsAgent } from "node:https";
import type { Duplex } from "node:stream";
import { type AgentGuard, directWay, type GuardedWay, openWay } from "./connect.js";

/** What an agent of Node calls `createConnection` with. */
interface Destination {
  readonly host?: string | null | undefined;
  readonly port?: number | string | null | undefined;
}
type Done = (error: Error | null, stream: Duplex) => void;

/**
 * Agents of `node:http` and `node:https`, whose connections are all guarded. TLS is verified, whatever
 * `NODE_TLS_REJECT_UNAUTHORIZED` says. Close them with `destroy`.
 */
export function guardedAgents(
  guard: AgentGuard,
  options: AgentOptions = {},
): { readonly http: Agent; readonly https: HttpsAgent } {
  const http = new HttpAgent(options);
  const https = new HttpsAgent({ rejectUnauthorized: true, ...options });
  const connectHttp = http.createConnection.bind(http);
  const connectHttps = https.createConnection.bind(https);
  http.createConnection = (destination, done) =>
    connectBy(
      guard,
      destination,
      (way) => ("socket" in way ? way.socket : connectHttp({ ...destination, ...way })),
      done,
    );
  https.createConnection = (destination, done) =>
    connectBy(guard, destination, (way) => connectHttps({ ...destination, ...way }), done);
  return { http, https };
}

function connectBy(
  guard: AgentGuard,
  { host, port }: Destination,
  connect: (way: GuardedWay) => Duplex | null | undefined,
  done: Done | undefined,
): Duplex | null | undefined {
  // Node's type requires a stream even if there is none.
  const fail = (error: Error) => (done as ((error: Error) => void) | undefined)?.(error);
  const name = host ?? "localhost";
  const connectWatched = (way: GuardedWay) => {
    const stream = connect(way);
    if (stream != null) guard.onConnection?.(stream);
    return stream;
  };
  if (guard.upstreamProxy === undefined) {
    // At once: an agent counts a connection only when it has it, and `maxSockets` wouldn't hold.
    try {
      return connectWatched(directWay(name, Number(port), guard));
    } catch (error) {
      process.nextTick(fail, error);
      return undefined;
    }
  }
  openWay(name, Number(port), guard)
    .then((way) => {
      const stream = connectWatched(way);
      if (stream != null) done?.(null, stream);
    })
    .catch(fail);
  return undefined;
}
