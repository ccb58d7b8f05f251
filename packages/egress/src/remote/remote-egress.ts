import type { Lookup } from "../guarded-lookup.js";
import { directHosts } from "../proxy/session/client-environment.js";
import { type ClientOptions, prepareClients, type SessionEgress } from "../proxy/session/session-egress.js";
import type { ServeOptions } from "./remote-gate.js";

export interface RemoteEgressOptions extends ClientOptions {
  /** Such as the bridge's `RemoteSandbox`: leads a port of its loopback to a Unix socket inside. */
  readonly sandbox: { forward(path: string): Promise<number> };
  /** What the sandbox's platform made of a gate and a relay. Closed with the egress. */
  readonly gate: {
    /** Of the relay's Unix socket. */
    readonly path: string;
    serve(served: ServeOptions): Promise<void>;
    close(): Promise<void>;
  };
  readonly lookup: Lookup | undefined;
}

/**
 * The only way out of a sandbox: a gate in a process elsewhere. What the runner itself serves inside, such as tools, isn't
 * behind it: programs reach that directly.
 *
 * @throws SandboxFailed
 */
export async function openRemoteEgress(options: RemoteEgressOptions): Promise<SessionEgress> {
  const { sandbox, gate, spec, broker, lookup } = options;
  const [environmentAt, port] = await Promise.all([
    prepareClients(options),
    sandbox.forward(gate.path),
    gate.serve({ spec, lookup, credentials: broker }),
  ]);
  // A listed loopback address would be one of the gate, which has nothing there.
  return {
    environment: environmentAt(port, directHosts({ mode: "off", rules: [] })),
    close: () => gate.close(),
  };
}
