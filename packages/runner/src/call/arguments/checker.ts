import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import { InternalError } from "@ambit/core";
import { isJsonObject, type JsonObject, type ToolSpec } from "@ambit/core/contract";
import type { Log } from "@ambit/core/plugin";
import { pathBeyondDepth } from "../../json-values.js";
import { FairSlots } from "../../lifetime/fair-shares.js";

/** Characters of a tool's schema, as JSON. */
const maxSchemaLength = 262_144;
/** Characters of a call's arguments, as JSON. */
const maxArgumentsLength = 4_194_304;
/** Checks of one run that may time out; after that, no more are started. */
const maxTimeouts = 3;

/** Checks the arguments of one run's calls, with limits on size and time. */
export class ToolArguments {
  readonly #schemas = new Map<string, string>();
  #givenUp = 0;

  constructor(private readonly checker: ArgumentsChecker) {}

  /** The problem, in words that the model can act on; undefined if there is none. */
  async problem(tool: ToolSpec, input: JsonObject, signal: AbortSignal): Promise<string | undefined> {
    if (!needsCheck(tool)) return undefined;
    const schema = this.#schemaOf(tool);
    if (schema.length > maxSchemaLength) {
      return `Tool '${tool.name}' can't be called: its inputSchema has more than ${count(maxSchemaLength)} characters.`;
    }
    const text = JSON.stringify(withoutEphemeral(tool, input));
    if (text.length > maxArgumentsLength) {
      return `Tool '${tool.name}' was given arguments of more than ${count(maxArgumentsLength)} characters. Send less.`;
    }
    if (this.#givenUp >= maxTimeouts) {
      return `Tool '${tool.name}' can't be called: checks of arguments took too long ${maxTimeouts} times in this run.`;
    }
    const checked = await this.checker
      .check(this, { tool: tool.name, schema, given: text }, signal)
      .catch((error: unknown) => {
        if (signal.aborted) return { problem: `Tool '${tool.name}' wasn't called: the call was given up.` };
        throw error;
      });
    if (!("gaveUp" in checked)) return checked.problem;
    if (checked.gaveUp === "full")
      return `Tool '${tool.name}' wasn't called: too many calls of this run wait for their check. Call it again later.`;
    this.#givenUp += 1;
    const what = checked.gaveUp === "time" ? `longer than ${this.checker.checkMs} ms` : "too much memory";
    return `Tool '${tool.name}' wasn't called: checking these arguments against its inputSchema took ${what}. Send less.`;
  }

  #schemaOf(tool: ToolSpec): string {
    const cached = this.#schemas.get(tool.name);
    if (cached !== undefined) return cached;
    const schema = JSON.stringify(schemaWithoutEphemeral(tool));
    this.#schemas.set(tool.name, schema);
    return schema;
  }
}

/** What is meant for the user alone is checked against nothing: the model may leave it out, or write it as it likes. */
function withoutEphemeral({ ephemeralArgs = [] }: ToolSpec, input: JsonObject): JsonObject {
  if (ephemeralArgs.length === 0) return input;
  const hidden = new Set(ephemeralArgs);
  return Object.fromEntries(Object.entries(input).filter(([name]) => !hidden.has(name)));
}

function schemaWithoutEphemeral({ inputSchema, ephemeralArgs = [] }: ToolSpec): JsonObject {
  const { required } = inputSchema;
  if (ephemeralArgs.length === 0 || !Array.isArray(required)) return inputSchema;
  const hidden = new Set<unknown>(ephemeralArgs);
  return { ...inputSchema, required: required.filter((name: unknown) => !hidden.has(name)) };
}

/** Whether a tool's schema requires more than an object, which is the default. */
export function needsCheck({ inputSchema: { type, properties, ...more } }: ToolSpec): boolean {
  const describes = isJsonObject(properties) && Object.keys(properties).length > 0;
  return type !== "object" || describes || Object.keys(more).length > 0;
}

/** Why arguments can't be handled, checked before anything traverses them; undefined if they can. */
export function unusableArguments(name: string, input: unknown): string | undefined {
  if (pathBeyondDepth(input) === undefined) return undefined;
  return `Tool '${name}' was given arguments with too many levels of lists and objects within each other. Send fewer.`;
}

function count(characters: number): string {
  return characters.toLocaleString("en");
}

/** Concurrent checks. A slow one leaves the other for other runs. */
const workers = 2;
/** Milliseconds for a worker to load. */
const startMs = 30_000;
/** A schema that needs more ends only its worker. */
const resourceLimits = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 };

const require = createRequire(import.meta.url);

/** How a check ended. */
type Checked = CheckReply | { readonly gaveUp: "time" | "memory" | "full" };

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

/** One check, as the worker gets it. Strings, because they pass between threads without a deep copy. */
export interface CheckRequest {
  /** The tool's name. */
  readonly tool: string;
  /** Its JSON Schema, as JSON. */
  readonly schema: string;
  /** The arguments, as JSON. */
  readonly given: string;
}

/** The worker's reply. */
interface CheckReply {
  /** Undefined if the arguments are valid. */
  readonly problem: string | undefined;
}
