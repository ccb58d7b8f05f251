import { createRequire } from "node:module";
import { isDeepStrictEqual } from "node:util";
import { Worker } from "node:worker_threads";
import { type Log, messageOf } from "@ambit/core";
import type { Recording } from "../../recording.js";
import { isLoopback } from "../caller/loopback.js";
import { cantListen, urlOf } from "../connections/address.js";
import type { ReadyResponse } from "../route-schemas.js";
import type { ServerState } from "./answers.js";

/** Milliseconds that an answer of the store counts for all callers: the route needs no token. */
const storeAnswerMs = 1_000;

interface ReadinessContext {
  readonly log: Log;
  /** Resolves once the store is open, if one is loaded. @throws StoreFailed when it can't be opened */
  served(): Promise<Pick<Recording, "runs" | "isStored">>;
  /** Whether the server is shutting down. */
  isDraining(): boolean;
}

/** Whether the server takes runs now: it has started, doesn't shut down, and its store answers. */
export class Readiness {
  #lastAnswer: { readonly at: number; readonly answer: Promise<ReadyResponse["store"]> } | undefined;
  #store: ReadyResponse["store"] = "opening";

  constructor(readonly context: ReadinessContext) {
    const opened = () => {
      if (this.#store === "opening") this.#store = "unreachable";
    };
    context.served().then(opened, opened);
  }

  async look(): Promise<ReadyResponse> {
    const { isDraining } = this.context;
    // Neither an opening store nor one that hangs delays the answer that decides already.
    if (this.#store !== "opening" && !isDraining()) this.#store = await this.#storeAnswer();
    const store = this.#store;
    if (isDraining()) return { status: "draining", store };
    if (store === "opening") return { status: "starting", store };
    return { status: store === "unreachable" ? "unavailable" : "ready", store };
  }

  #storeAnswer(): Promise<ReadyResponse["store"]> {
    const now = performance.now();
    if (this.#lastAnswer === undefined || now - this.#lastAnswer.at > storeAnswerMs)
      this.#lastAnswer = { at: now, answer: this.#askStore() };
    return this.#lastAnswer.answer;
  }

  async #askStore(): Promise<ReadyResponse["store"]> {
    const { served, log } = this.context;
    try {
      const { runs, isStored } = await served();
      if (!isStored) return "none";
      await runs.store.heads([""]);
      return "reachable";
    } catch (error) {
      log.debug({ error: messageOf(error) }, "not ready: the store can't be reached");
      return "unreachable";
    }
  }
}

/** What the thread of the health listener starts with. */
export interface HealthThreadSettings {
  readonly host: string;
  readonly port: number;
  /** Open connections: one more, and the oldest ends. */
  readonly maxConnections: number;
  /** Milliseconds without a turn of the main event loop, after which it counts as stalled. */
  readonly stallTimeoutMs: number;
  /** Further names under which a listener on loopback may be called. Undefined for any other listener, which takes any name. */
  readonly allowedHosts: readonly string[] | undefined;
  /** One number: when the main event loop last turned, in nanoseconds of `process.hrtime`. */
  readonly lastTurn: BigInt64Array<SharedArrayBuffer>;
  readonly state: ServerState;
}

/** From the thread: it listens, or can't. */
export type HealthThreadReport = { readonly port: number } | { readonly error: string };

/** Milliseconds between two turns of the main event loop that the thread learns of. */
const turnMs = 250;
/** Milliseconds between two looks at the server's state, and before a thread that ended is started again. */
const lookMs = 1_000;
/** The memory that the thread may use, which keeps no more than some connections. */
const resourceLimits = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 4 };

const require = createRequire(import.meta.url);

interface HealthListenerOptions
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
