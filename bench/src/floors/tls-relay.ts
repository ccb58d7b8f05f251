import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { connect as connectTls, type SecureContext, TLSSocket } from "node:tls";

export interface TlsRelayOptions {
  /** The unix socket to listen on. */
  readonly path: string;
  /** For the clients' side: a certificate of the requested host. */
  readonly secureContext: SecureContext;
  /** The server that every connection leads to. */
  readonly server: { readonly port: number; readonly host: string; readonly authority: string };
}

/**
 * The floor of the credential broker: a relay that only decrypts and encrypts. It expects TLS after the header of a
 * CONNECT request.
 *
 * @returns a function that stops it.
 */
export async function openTlsRelay({
  path,
  secureContext,
  server,
}: TlsRelayOptions): Promise<() => Promise<void>> {
  const open = new Set<Socket>();
  const listener = createServer((socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    socket.once("data", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      const client = new TLSSocket(socket, { isServer: true, secureContext });
      const upstream = connectTls({
        socket: connect(server.port, "127.0.0.1"),
        servername: server.host,
        ca: server.authority,
      });
      client.pipe(upstream).pipe(client);
      // Data in flight reaches the client before its side ends.
      client.once("error", () => client.destroy()).once("close", () => upstream.destroy());
      upstream.once("error", () => client.destroy());
    });
  });
  listener.listen(path);
  await once(listener, "listening");
  return async () => {
    for (const socket of open) socket.destroy();
    listener.close();
    await once(listener, "close");
  };
}
