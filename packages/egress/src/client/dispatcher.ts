import { Agent, buildConnector } from "undici";
import { AddressRefused } from "../guarded-lookup.js";
import { type ConnectionGuard, directWay, openWay } from "./connect.js";

export interface DispatcherOptions extends Omit<Agent.Options, "connect"> {
  /** For a connection with its TLS handshake. Default: undici's 10 s. */
  readonly connectMs?: number | undefined;
}

/**
 * An agent of undici whose connections are all guarded, in a module of its own: undici takes tens of milliseconds to load. TLS is
 * verified, whatever the process's variables are.
 */
export function guardedDispatcher(
  guard: ConnectionGuard,
  { connectMs, ...options }: DispatcherOptions = {},
): Agent {
  const settings = { rejectUnauthorized: true, allowH2: options.allowH2 ?? false, timeout: connectMs };
  const connect: buildConnector.connector = (destination, done) => {
    const { hostname, protocol } = destination;
    const port = Number(destination.port) || (protocol === "https:" ? 443 : 80);
    const fail = (error: unknown) =>
      done(error instanceof Error ? error : new AddressRefused(String(error)), null);
    // A connector of its own for each connection would forget TLS sessions; a lookup is an option of the connector.
    if (guard.upstreamProxy === undefined) {
      try {
        directWay(hostname, port, guard);
      } catch (error) {
        return fail(error);
      }
      return direct(port)(destination, done);
    }
    openWay(hostname, port, guard).then((way) => {
      if (!("socket" in way)) return direct(port)(destination, done);
      if (protocol !== "https:") return done(null, way.socket);
      return overSocket({ ...destination, httpSocket: way.socket }, done);
    }, fail);
  };
  const overSocket = buildConnector(settings);
  const connectors = new Map<number, buildConnector.connector>();
  const direct = (port: number) => {
    let connector = connectors.get(port);
    if (connector === undefined) {
      const way = directWay("name.invalid", port, guard);
      connector = buildConnector({ ...settings, ...way });
      connectors.set(port, connector);
    }
    return connector;
  };
  return new Agent({ ...options, connect });
}
