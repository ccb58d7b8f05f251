import { once } from "node:events";
import { createConnection, createServer, type Server, type Socket } from "node:net";

/** A loopback port in front of a unix socket. Cut off, it keeps its connections and passes nothing on. */
export class CuttableProxy implements AsyncDisposable {
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  #isCut = false;

  private constructor(readonly path: string) {
    this.#server = createServer((near) => this.#join(near));
  }

  static async to(path: string): Promise<CuttableProxy> {
    const proxy = new CuttableProxy(path);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  get port(): number {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new TypeError("the proxy has no port");
    return address.port;
  }

  cut(): void {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.pause();
  }

  join(): void {
    this.#isCut = false;
    for (const socket of this.#sockets) socket.resume();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }

  #join(near: Socket): void {
    const far = createConnection(this.path);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(one);
      one.on("data", (data) => void other.write(data));
      one.on("error", () => one.destroy());
      one.on("close", () => {
        this.#sockets.delete(one);
        other.destroy();
      });
      if (this.#isCut) one.pause();
    }
  }
}
