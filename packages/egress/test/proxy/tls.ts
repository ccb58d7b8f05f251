import { Duplex } from "node:stream";
import { connect as connectTls } from "node:tls";

/** The first flight that Node's own TLS client sends. */
export function realClientHello(servername: string | undefined): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const wire = new Duplex({ read() {}, write: (chunk: Buffer) => resolve(chunk) });
    connectTls({ socket: wire, ...(servername === undefined ? {} : { servername }) }).on("error", reject);
  });
}
