import { createRequire } from "node:module";
import { isDeepStrictEqual } from "node:util";
import { Worker } from "node:worker_threads";
import type { Log } from "@ambit/core";
import { isLoopback } from "../caller/loopback.js";
import { cantListen, urlOf } from "../connections/address.js";
import type { ServerState } from "./answers.js";
import type { HealthThreadReport, HealthThreadSettings } from "./messages.js";

/** Milliseconds between two turns of the main event loop that the thread learns of. */
const turnMs = 250;
/** Milliseconds between two looks at the server's state, and before a thread that ended is started again. */
const lookMs = 1_000;
/** Of the thread, which keeps no more than some connections. */
const resourceLimits = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 4 };

const require = createRequire(import.meta.url);

export interface HealthListenerOptions
  extends Pick<HealthThreadSettings, "host" | "port" | "maxConnections" | "stallTimeoutMs"> {
  readonly allowedHosts: readonly string[];
  readonly log: Log;
  /** Until the present state is known. */
  readonly initialState: ServerState;
  /** The server's present state. Never rejects. */
  state(): Promise<ServerState>;
}

/**
 * Answers `/health` and `/ready` in a thread, on a port that no other caller of the server shares: neither a busy event loop nor
 * thousands of waiting connections delay it. The thread knows when the main event loop last turned, and the server's
 * state of a second ago.
 */
export class HealthListener {
  readonly #lastTurn = new BigInt64Array(new SharedArrayBuffer(8));
  readonly #timers: readonly NodeJS.Timeout[];
  #state: ServerState;
  #worker: Worker | undefined;
  #restart: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** @throws ConfigurationInvalid where it can't listen */
  static async start(options: HealthListenerOptions): Promise<HealthListener> {
    const listener = new HealthListener(options);
    try {
      listener.#port = await listener.#start();
    } catch (cause) {
      await listener.close();
      const { host, port } = options;
      throw cantListen("server.health", host, port, cause);
    }
    return listener;
  }

  #port: number;

  private constructor(readonly options: HealthListenerOptions) {
    this.#port = options.port;
    this.#state = options.initialState;
    const turned = () => Atomics.store(this.#lastTurn, 0, process.hrtime.bigint());
    turned();
    this.#timers = [setInterval(turned, turnMs), setInterval(() => void this.tell(), lookMs)];
    for (const timer of this.#timers) timer.unref();
  }

  /** `http://127.0.0.1:8766`. */
  get url(): string {
    return urlOf(this.options.host, this.#port);
  }

  /** Tells the thread the server's state, if it has changed. */
  async tell(): Promise<void> {
    const state = await this.options.state();
    if (isDeepStrictEqual(state, this.#state)) return;
    this.#state = state;
    this.#worker?.postMessage(state);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const timer of this.#timers) clearInterval(timer);
    clearTimeout(this.#restart);
    await this.#worker?.terminate();
  }

  /** @returns the port. @throws Error where it can't listen */
  async #start(): Promise<number> {
    const { host, maxConnections, stallTimeoutMs, allowedHosts, log } = this.options;
    const settings: HealthThreadSettings = {
      host,
      port: this.#port,
      maxConnections,
      stallTimeoutMs,
      lastTurn: this.#lastTurn,
      state: this.#state,
      allowedHosts: isLoopback(host) ? allowedHosts : undefined,
    };
    const worker = new Worker(require.resolve("#health-thread"), {
      workerData: settings,
      resourceLimits,
      env: {},
    });
    this.#worker = worker;
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    worker.on("message", (report: HealthThreadReport) => {
      if ("port" in report) resolve(report.port);
      else reject(new Error(report.error));
    });
    worker.once("error", reject);
    worker.once("exit", () => reject(new Error("its thread ended")));
    const port = await promise;
    // It doesn't keep the process.
    worker.unref();
    worker.once("error", (error) => log.error({ error }, "the thread of the health listener failed"));
    worker.once("exit", () => this.#startAgain());
    return port;
  }

  #startAgain(): void {
    if (this.#isClosed) return;
    this.#restart = setTimeout(() => {
      this.#start().catch((error: unknown) => {
        this.options.log.error({ error }, "the health listener can't be started again");
        void this.#worker?.terminate();
        this.#startAgain();
      });
    }, lookMs).unref();
  }
}
