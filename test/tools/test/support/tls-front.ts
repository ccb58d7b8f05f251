import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { makeAuthority } from "@ambit/egress/credentials";

export interface TlsFront extends AsyncDisposable {
  readonly port: number;
  /** The certificate that a client must trust, in PEM. */
  readonly authority: string;
}

/** Terminates TLS, under any name, in front of a plain HTTP server. */
export async function startTlsFront(url: string): Promise<TlsFront> {
  const authority = await makeAuthority();
  const server = createServer(
    {
      SNICallback: (name, done) => {
        authority.contextFor(name).then((context) => done(null, context), done);
      },
    },
    (incoming, outgoing) => {
      const { method, headers } = incoming;
      const onward = httpRequest(new URL(incoming.url ?? "/", url), { method, headers }, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      });
      onward.on("error", () => outgoing.destroy());
      incoming.pipe(onward);
    },
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    port,
    authority: authority.certificate,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
