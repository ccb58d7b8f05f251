import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { dockerEngine } from "@ambit/docker-engine";

/**
 * What stands between a backend and the test run's engine. `carries` everything; `refuses`: no engine answers, and what
 * was open breaks; `isSilent`: accepts and never responds.
 */
export class EngineProxy {
  mode: "carries" | "refuses" | "isSilent" = "carries";
  #dropped: RegExp | undefined;
  readonly #sockets = new Set<Socket>();
  readonly #path: string;
  readonly #server = createServer((client) => this.#carry(client));

  /** @param folder that the test removes. */
  constructor(folder: string) {
    this.#path = join(folder, "engine.sock");
  }

  get address(): string {
    return `unix://${this.#path}`;
  }

  async open(): Promise<void> {
    await once(this.#server.listen(this.#path), "listening");
  }

  change(mode: EngineProxy["mode"]): void {
    this.mode = mode;
    if (mode === "refuses") for (const socket of this.#sockets) socket.destroy();
  }

  /** Ends the connection of the next request whose head is like this, when it has been passed on. */
  dropNext(head: RegExp): void {
    this.#dropped = head;
  }

  get hasDropped(): boolean {
    return this.#dropped === undefined;
  }

  close(): void {
    this.change("refuses");
    this.#server.close();
  }

  #carry(client: Socket): void {
    this.#keep(client);
    if (this.mode === "refuses") client.destroy();
    if (this.mode !== "carries") return;
    const engine = this.#keep(connect(dockerEngine().socket));
    client.pipe(engine).pipe(client);
    client.on("data", (part: Buffer) => {
      if (this.#dropped?.test(part.toString("latin1")) !== true) return;
      this.#dropped = undefined;
      client.destroy();
    });
    client.once("close", () => engine.destroy());
    engine.once("close", () => client.destroy());
  }

  #keep(socket: Socket): Socket {
    this.#sockets.add(socket);
    socket.on("error", () => undefined);
    return socket.once("close", () => this.#sockets.delete(socket));
  }
}
