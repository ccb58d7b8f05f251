import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { type Call, type Report, report, type Setup } from "../../runner/messages.js";

type Said = Extract<Report, { report: "exited" | "query" | "datagram" }>;

interface Waiting {
  resolve(pid: number | undefined): void;
  reject(error: Error): void;
}

/** The control plane's client of its runner's process. */
export class RunnerClient {
  readonly #waiting = new Map<number, Waiting>();
  #number = 0;
  #ended: Promise<void>;
  #limits: readonly string[] = [];

  private constructor(
    private readonly child: ChildProcess,
    private readonly listen: (said: Said) => void,
  ) {
    const errors: Buffer[] = [];
    child.stderr?.on("data", (chunk: Buffer) => errors.push(chunk));
    this.#ended = new Promise((resolve) => {
      const end = (reason: string) => {
        for (const { reject } of this.#waiting.values()) reject(new Error(`the runner ended: ${reason}`));
        this.#waiting.clear();
        resolve();
      };
      child.once("error", (error) => end(error.message));
      // Not "close", which a disconnected child doesn't always emit.
      child.once("exit", async () => {
        if (child.stderr && !child.stderr.readableEnded) await once(child.stderr, "end");
        end(Buffer.concat(errors).toString("utf8").trim());
      });
    });
  }

  static async start(setup: Setup, listen: (said: Said) => void): Promise<RunnerClient> {
    const main = fileURLToPath(new URL("../../runner/bundle/main.js", import.meta.url));
    const apart = ["--mount", "--net", "--propagation", "private", "--"];
    const child = spawn("unshare", [...apart, process.execPath, main], {
      env: { PATH: process.env.PATH },
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    const client = new RunnerClient(child, listen);
    const ready = client.#answer();
    child.on("message", (message) => client.#hear(report.parse(message)));
    child.send(setup);
    await ready;
    return client;
  }

  /** Which limits this machine enforces: `memory`, `cpu`, `pids`, `devices`. */
  get limits(): readonly string[] {
    return this.#limits;
  }

  /** Resolves when it is done; for a start, with the pid. */
  async call(call: Call): Promise<number | undefined> {
    if (!this.child.connected) throw new Error("the runner isn't there any more");
    const answered = this.#answer();
    this.child.send({ number: this.#number, call });
    return await answered;
  }

  async close(): Promise<void> {
    if (this.child.connected) {
      await this.call({ method: "close" }).catch(() => {});
      this.child.disconnect();
    }
    await this.#ended;
  }

  #answer(): Promise<number | undefined> {
    this.#number += 1;
    const number = this.#number;
    return new Promise((resolve, reject) => this.#waiting.set(number, { resolve, reject }));
  }

  #hear(said: Report): void {
    switch (said.report) {
      case "ready":
        this.#limits = said.limits;
        this.#settle(1)?.resolve(undefined);
        return;
      case "done":
        this.#settle(said.number)?.resolve(said.pid);
        return;
      case "failed":
        this.#settle(said.number)?.reject(new Error(said.message));
        return;
      default:
        this.listen(said);
    }
  }

  #settle(number: number): Waiting | undefined {
    const waiting = this.#waiting.get(number);
    this.#waiting.delete(number);
    return waiting;
  }
}
