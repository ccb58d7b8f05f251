import { Agent, type AgentOptions } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import {
  type ConnectionOptions,
  connect,
  createSecureContext,
  getCACertificates,
  type SecureContext,
  type TLSSocket,
} from "node:tls";
import type { Target } from "../target.js";
import type { ServerTrust } from "./values.js";

/**
 * The context that verifies a server's certificate. Created once per list, since parsing hundreds of certificates is
 * slow.
 */
export class TrustedServers {
  readonly #context: SecureContext;
  /** The last TLS session of each destination, for resumption. */
  readonly #sessions = new Map<string, Buffer>();

  constructor({ trusted, added = [] }: ServerTrust) {
    this.#context =
      trusted === undefined ? hostContext(added) : createSecureContext({ ca: [...trusted, ...added] });
  }

  /** A verified TLS connection over the socket; rejects if the certificate isn't the server's. */
  open(socket: Socket, { host, port }: Target): Promise<TLSSocket> {
    const key = `${host}:${port}`;
    const session = this.#sessions.get(key);
    const options: ConnectionOptions = {
      socket,
      servername: host,
      secureContext: this.#context,
      rejectUnauthorized: true,
      minVersion: "TLSv1.2",
      ALPNProtocols: ["http/1.1"],
      session,
    };
    return new Promise((resolve, reject) => {
      const tls = connect(options);
      tls.on("session", (next) => this.#sessions.set(key, next));
      // Kept while the connection is idle, so that an error ends only this connection.
      tls.on("error", reject);
      tls.once("close", () => reject(new Error("the connection was closed during the TLS handshake")));
      tls.once("secureConnect", () => resolve(tls));
    });
  }
}

/** Caches the last one: parsing hundreds of certificates takes 60 ms, and all sessions of a host have the same list. */
let shared: { readonly added: string; readonly context: SecureContext } | undefined;

function hostContext(added: readonly string[]): SecureContext {
  const key = added.join("\n");
  if (shared?.added !== key) {
    shared = { added: key, context: createSecureContext({ ca: [...hostAuthorities(), ...added] }) };
  }
  return shared.context;
}

/** All authorities, in PEM, for a proxy in another process. */
export const trustedBy = ({ trusted, added = [] }: ServerTrust): readonly string[] => [
  ...(trusted ?? hostAuthorities()),
  ...added,
];

/** Node's authorities, those of `NODE_EXTRA_CA_CERTS`, and this host's: the same that programs inside trust. */
function hostAuthorities(): string[] {
  return [...new Set([...getCACertificates("default"), ...getCACertificates("system")])];
}

/** Reuses the one server connection of a client connection, and opens it if there is none. */
export class UpstreamAgent extends Agent {
  readonly #open: () => Promise<TLSSocket>;

  constructor(open: () => Promise<TLSSocket>, options: AgentOptions = {}) {
    super({ ...options, keepAlive: true, maxSockets: 1, maxFreeSockets: 1 });
    this.#open = open;
  }

  override createConnection(
    _options: unknown,
    done?: (error: Error | null, stream: Duplex) => void,
  ): Duplex | null | undefined {
    this.#open().then(
      (socket) => done?.(null, socket),
      // Node's type requires a stream even if there is none.
      (error: Error) => (done as ((error: Error) => void) | undefined)?.(error),
    );
    return undefined;
  }
}
