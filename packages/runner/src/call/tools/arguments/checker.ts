import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import { InternalError } from "@ambit/core";
import type { Log } from "@ambit/core/plugin";
import { FairSlots } from "../../../lifetime/fair-slots.js";
import type { CheckReply, CheckRequest } from "./messages.js";

/** Concurrent checks. A slow one leaves the other for other runs. */
const workers = 2;
/** Milliseconds for a worker to load. */
const startMs = 30_000;
/** A schema that needs more ends only its worker. */
const resourceLimits = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 };

const require = createRequire(import.meta.url);

/** How a check ended. */
export type Checked = CheckReply | { readonly gaveUp: "time" | "memory" | "full" };

/** Checks arguments in worker threads, for all runs: a slow schema doesn't block the event loop. */
export class ArgumentsChecker {
  readonly #idle: CheckWorker[] = [];
  readonly #all = new Set<CheckWorker>();
  #closed = false;
  /** One at a time per run, in turn. */
  readonly #slots = new FairSlots({ atOnce: workers, perOwner: 1, waiting: 256 });

  constructor(
    /** Milliseconds that one check may take, once it has begun. */
    readonly checkMs: number,
    readonly log: Log,
  ) {}

  /** Starts a worker if there is none, so that the first check needn't wait for it. */
  prepare(): void {
    if (this.#all.size > 0 || this.#closed) return;
    const worker = this.#start();
    worker.ready.then(
      () => this.#idle.push(worker),
      (error: unknown) => this.log.error({ error }, "the worker that checks arguments didn't start"),
    );
  }

  /** @param run that the check is for. @throws the signal's reason, InternalError */
  async check(run: object, request: CheckRequest, signal: AbortSignal): Promise<Checked> {
    const release = await this.#slots.acquire(run, signal);
    if (release === undefined || this.#closed) return { gaveUp: "full" };
    try {
      const worker = this.#idle.pop() ?? this.#start();
      await worker.ready;
      const checked = await worker.check(request, this.checkMs);
      if ("gaveUp" in checked) this.log.warn({ tool: request.tool, ...checked }, "a check was given up");
      else this.#idle.push(worker);
      return checked;
    } finally {
      release();
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#all].map((worker) => worker.end()));
  }

  #start(): CheckWorker {
    const worker = new CheckWorker();
    this.#all.add(worker);
    void worker.ended.then(() => {
      this.#all.delete(worker);
      const at = this.#idle.indexOf(worker);
      if (at >= 0) this.#idle.splice(at, 1);
    });
    return worker;
  }
}

/** One worker thread, with one check at a time. */
class CheckWorker {
  readonly #thread = new Worker(require.resolve("#arguments-worker"), { resourceLimits });
  readonly ready: Promise<void>;
  readonly ended: Promise<void>;
  #settle: (checked: Checked) => void = () => {};
  #broken: (error: Error) => void = () => {};

  constructor() {
    this.#thread.unref();
    this.ended = new Promise((resolve) =>
      this.#thread.once("exit", () => {
        this.#broken(new Error("the worker that checks arguments has ended"));
        resolve();
      }),
    );
    this.#thread.on("error", (error) => this.#broken(error));
    this.ready = new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        this.#broken(new Error(`the worker that checks arguments didn't start within ${startMs} ms`));
        void this.end();
      }, startMs);
      this.#broken = (error) => {
        clearTimeout(late);
        reject(new InternalError(error));
      };
      this.#thread.on("message", (message: CheckReply | "ready") => {
        if (message !== "ready") return this.#settle(message);
        clearTimeout(late);
        resolve();
      });
    });
    // A check that waits for the worker fails with it; the failure of an idle worker is only logged.
    this.ready.catch(() => {});
  }

  check(request: CheckRequest, milliseconds: number): Promise<Checked> {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        resolve({ gaveUp: "time" });
        void this.end();
      }, milliseconds);
      this.#settle = (checked) => {
        clearTimeout(late);
        resolve(checked);
      };
      this.#broken = (error) => {
        clearTimeout(late);
        if ("code" in error && error.code === "ERR_WORKER_OUT_OF_MEMORY") resolve({ gaveUp: "memory" });
        else reject(new InternalError(error));
      };
      this.#thread.postMessage(request);
    });
  }

  async end(): Promise<void> {
    await this.#thread.terminate();
  }
}
