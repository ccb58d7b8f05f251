import type { UpstreamProxy } from "@ambit/core/plugin";
import { guardedAgents } from "@ambit/egress/client";
import { type ExportResult, ExportResultCode } from "@opentelemetry/core";
import type { IOtlpExportDelegate } from "@opentelemetry/otlp-exporter-base";
import {
  convertLegacyHttpOptions,
  createOtlpHttpExportDelegate,
} from "@opentelemetry/otlp-exporter-base/node-http";
import type { HttpDestination } from "../destination.js";
import type { OtlpProtocol, QueueLimits } from "../environment.js";
import { exportMs, type HttpAgents } from "./agents.js";
import type { Losses } from "./losses.js";
import type { ExportedSignal, PartialSuccess } from "./signal.js";

/** Batches at once: when a queue is closed, all of its batches follow the one under way. Pure. */
export function maxExportsOf(limits: QueueLimits): number {
  return Math.ceil(limits.maxQueueSize / limits.maxExportBatchSize) + 1;
}

/** Both are called with a number of spans or log records. */
export interface ExportProgress {
  /** They left the queue. */
  taken(count: number): void;
  /** They were accepted or lost. */
  settled(count: number): void;
}

export type Grpc = typeof import("./grpc.js");

/** Sends batches, and takes note of each answer. */
type Sender<Data> = (note: (answer: Uint8Array) => void) => IOtlpExportDelegate<Data>;

/**
 * Over HTTP as protobuf, to an address that the configuration or a request names. Of the environment it reads nothing: the
 * operator's headers and certificates would go to a caller's endpoint.
 */
export function httpSender<Data>(
  signal: ExportedSignal<Data>,
  { url, headers }: HttpDestination,
  agentFactory: HttpAgents,
  concurrencyLimit: number,
): Sender<Data> {
  const { contentType, write } = signal.protobuf;
  const options = {
    url,
    headers: async () => ({ ...headers, "Content-Type": contentType }),
    timeoutMillis: exportMs,
    concurrencyLimit,
    compression: "gzip" as const,
    agentFactory,
  };
  return (note) =>
    createOtlpHttpExportDelegate(
      options,
      serializer(write, note),
      `otlp_http_${signal.component}`,
      signal.counting,
      undefined,
    );
}

/** To the destination that OpenTelemetry's variables describe, as the SDK's own exporters read them. */
export function environmentSender<Data>(
  signal: ExportedSignal<Data>,
  protocol: OtlpProtocol,
  {
    maxExports: concurrencyLimit,
    grpc,
    upstreamProxy,
  }: {
    readonly maxExports: number;
    readonly grpc: Grpc | undefined;
    readonly upstreamProxy: UpstreamProxy | undefined;
  },
): Sender<Data> {
  const { name, component, counting } = signal;
  const variables = name.toUpperCase();
  if (protocol === "grpc") {
    if (grpc === undefined) throw new Error("OTLP over gRPC wasn't loaded.");
    const options = grpc.convertLegacyOtlpGrpcOptions({ concurrencyLimit }, variables);
    const { service, method } = signal.grpc;
    return (note) =>
      new RetryingGrpc(
        grpc.createOtlpGrpcExportDelegate(
          options,
          serializer(signal.protobuf.write, note),
          `otlp_grpc_${component}`,
          counting,
          undefined,
          service,
          method,
        ),
        options.timeoutMillis,
      );
  }
  const { contentType, write } = protocol === "http/json" ? signal.json : signal.protobuf;
  const read = convertLegacyHttpOptions({ concurrencyLimit }, variables, `v1/${name}`, {
    "Content-Type": contentType,
  });
  const options = {
    ...read,
    // With the certificates that the variables name.
    agentFactory: async (protocol: string) => {
      const agent = await read.agentFactory(protocol);
      const given = "options" in agent && typeof agent.options === "object" ? agent.options : null;
      const agents = guardedAgents({ upstreamProxy }, given ?? {});
      return protocol === "https:" ? agents.https : agents.http;
    },
  };
  const kind = protocol === "http/json" ? "otlp_http_json" : "otlp_http";
  return (note) =>
    createOtlpHttpExportDelegate(
      options,
      serializer(write, note),
      `${kind}_${component}`,
      counting,
      undefined,
    );
}

/** The SDK calls `deserializeResponse` directly before it reports the batch as sent, and only logs its content itself. */
function serializer<Data>(write: (data: Data) => Uint8Array | undefined, note: (answer: Uint8Array) => void) {
  return {
    serializeRequest: write,
    deserializeResponse: (answer: Uint8Array) => {
      note(answer);
      return {};
    },
  };
}

/** Counts what becomes of each batch. To the SDK every batch is a success: its own handler would write to the console. */
export class AccountingDelegate<Data> implements IOtlpExportDelegate<Data> {
  readonly #delegate: IOtlpExportDelegate<Data>;
  #answer: PartialSuccess | "unreadable" | undefined;

  constructor(
    readonly signal: ExportedSignal<Data>,
    protocol: OtlpProtocol,
    send: Sender<Data>,
    readonly losses: Losses,
    readonly progress?: ExportProgress,
  ) {
    const { read } = protocol === "http/json" ? signal.json : signal.protobuf;
    this.#delegate = send((answer) => {
      this.#answer = answerOf(answer, read);
    });
  }

  export(data: Data, done: (result: ExportResult) => void): void {
    const count = this.signal.counting.countItems(data);
    this.progress?.taken(count);
    this.#delegate.export(data, (result) => {
      const answer = this.#answer;
      this.#answer = undefined;
      this.progress?.settled(count);
      this.#account(result, count, answer);
      done({ code: ExportResultCode.SUCCESS });
    });
  }

  forceFlush(): Promise<void> {
    return this.#delegate.forceFlush();
  }

  shutdown(): Promise<void> {
    return this.#delegate.shutdown();
  }

  setMetrics(...given: Parameters<IOtlpExportDelegate<Data>["setMetrics"]>): void {
    this.#delegate.setMetrics(...given);
  }

  #account(
    { code, error }: ExportResult,
    count: number,
    answer: PartialSuccess | "unreadable" | undefined,
  ): void {
    const { losses } = this;
    if (code !== ExportResultCode.SUCCESS) losses.lost("export_failed", count, error?.message);
    else if (answer === "unreadable") losses.lost("not_a_collector", count, "the answer isn't OTLP");
    else {
      const rejected = Math.min(answer?.rejected ?? 0, count);
      losses.accepted(count - rejected, rejected === 0);
      losses.lost("rejected", rejected, answer?.message.slice(0, maxMessageLength));
    }
  }
}

/** Characters of a collector's message in the log. */
const maxMessageLength = 500;

/** An empty answer accepts all. A login page or proxy's error with status 200 is HTML, which no collector sends. */
function answerOf(
  answer: Uint8Array,
  read: (answer: Uint8Array) => PartialSuccess,
): PartialSuccess | "unreadable" {
  if (/^\s*<[!a-z?]/i.test(Buffer.from(answer.subarray(0, 64)).toString("latin1"))) return "unreadable";
  try {
    return read(answer);
  } catch {
    return "unreadable";
  }
}

/**
 * Status codes of gRPC with which OTLP's specification has a batch sent again: CANCELLED, DEADLINE_EXCEEDED, ABORTED,
 * OUT_OF_RANGE, UNAVAILABLE, DATA_LOSS.
 */
const retryable: ReadonlySet<unknown> = new Set([1, 4, 10, 11, 14, 15]);

const firstDelayMs = 1_000;
const maxDelayMs = 5_000;

/** Sends a batch again, as the SDK does over HTTP but not over gRPC. No attempt begins after `timeoutMs`. */
class RetryingGrpc<Data> implements IOtlpExportDelegate<Data> {
  readonly #pending = new Set<Promise<void>>();

  constructor(
    readonly delegate: IOtlpExportDelegate<Data>,
    readonly timeoutMs: number,
  ) {}

  export(data: Data, done: (result: ExportResult) => void): void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#pending.add(promise);
    this.#attempt(data, performance.now() + this.timeoutMs, firstDelayMs, (result) => {
      this.#pending.delete(promise);
      done(result);
      resolve();
    });
  }

  async forceFlush(): Promise<void> {
    await Promise.all(this.#pending);
  }

  async shutdown(): Promise<void> {
    await this.forceFlush();
    await this.delegate.shutdown();
  }

  setMetrics(...given: Parameters<IOtlpExportDelegate<Data>["setMetrics"]>): void {
    this.delegate.setMetrics(...given);
  }

  #attempt(data: Data, end: number, delayMs: number, done: (result: ExportResult) => void): void {
    this.delegate.export(data, (result) => {
      // Spread, so that replicas that lost their collector together don't return together.
      const waitMs = delayMs * (0.8 + 0.4 * Math.random());
      if (!isRetryable(result) || performance.now() + waitMs > end) return done(result);
      const next = Math.min(delayMs * 1.5, maxDelayMs);
      setTimeout(() => this.#attempt(data, end, next, done), waitMs);
    });
  }
}

function isRetryable({ code, error }: ExportResult): boolean {
  if (code === ExportResultCode.SUCCESS || error === undefined) return false;
  return "code" in error && retryable.has(error.code);
}
