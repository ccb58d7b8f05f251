import type { ModelExchange } from "@ambit/core/plugin";
import type { Price } from "../config.js";
import { JsonScan } from "../json-scan.js";
import { bytesPerToken, costOf } from "../models.js";
import { type Counted, type Finish, nothingCounted, type Protocol } from "../protocols/protocol.js";
import { AwsEvents, EventLines, type ResponseReader, WholeDocument } from "./readers.js";

/** Bytes of an event around the text that it brings. */
const eventFrame = 300;

/** Where providers put error messages. */
const errorPaths: readonly string[] = ["error.message", "message"];
/** And in a stream that has begun as a success. */
const lateErrorPaths: readonly string[] = ["error.message", "response.error.message"];

/** Bytes of a stream's end that are kept, to see how it ended. */
const tailBytes = 32;

/** What is said later never takes back what is said here. */
const ranks: Readonly<Record<Finish, number>> = { open: 0, whole: 1, max_tokens: 2, failed: 3 };

export interface MeterOptions {
  readonly protocol: Protocol;
  readonly model: string;
  readonly price: Price | undefined;
  readonly exchange: ModelExchange;
  readonly requestBytes: number;
  /** Tokens that the request allowed. Undefined if it isn't known. */
  readonly maxOutput: number | undefined;
  readonly contentType: string;
  /** Whether the response is a success: an error response costs nothing. */
  readonly isFine: boolean;
  /** Whether the server never says that an answer is finished: one that ends is. */
  readonly isWithoutFinish?: boolean;
}

/** Reads the usage in a response as it passes, and reports increases. */
export class Meter {
  readonly #options: MeterOptions;
  readonly #reader: ResponseReader;
  #counted = nothingCounted;
  #reported = nothingCounted;
  #isCounted = false;
  /** The provider's error message. */
  error: string | undefined;
  #finish: Finish | undefined;
  /** The stream's last bytes. */
  #tail = Buffer.alloc(0);

  constructor(options: MeterOptions) {
    this.#options = options;
    const { protocol, isFine } = options;
    const paths = isFine ? [...protocol.usagePaths, ...protocol.finishPaths, ...lateErrorPaths] : errorPaths;
    const scan = () =>
      new JsonScan({
        paths,
        onCaptured: ({ path, value }) => this.#captured(path, value),
      });
    this.#reader = readerOf(options.contentType, scan, paths);
  }

  push(bytes: Buffer): void {
    this.#reader.push(bytes);
    this.#tail = Buffer.from(
      bytes.length < tailBytes
        ? Buffer.concat([this.#tail, bytes]).subarray(-tailBytes)
        : bytes.subarray(-tailBytes),
    );
    this.#tell();
  }

  /**
   * The response is over.
   * @param isWhole false if it was interrupted or abandoned: the usage that the provider reports at the end is
   * estimated, as in a stream that ended before its answer was finished.
   */
  end(isWhole: boolean): void {
    const { requestBytes } = this.#options;
    if (!this.#isCounted) {
      const input = Math.ceil(requestBytes / bytesPerToken);
      this.#counted = { ...nothingCounted, input, output: this.#passed() };
    } else if (!isWhole || (this.#isStream && this.finish === "open")) {
      this.#counted = { ...this.#counted, output: Math.max(this.#counted.output, this.#passed()) };
    }
    this.#tell();
  }

  /** How far the answer had come when it ended. A document of an unknown form counts as whole. */
  get finish(): Finish {
    const { isWithoutFinish = false } = this.#options;
    if (this.#finish === "open" || (this.#finish === undefined && this.#isStream))
      return this.#isFull && (isWithoutFinish || this.#hasLastLine) ? "whole" : "open";
    return this.#finish ?? "whole";
  }

  /** Whether there is more than a last line, and no error. */
  get #isFull(): boolean {
    return this.error === undefined && (!this.#isStream || this.#reader.events > 1);
  }

  /** Events with a finish that is still open say that it wasn't the answer's end. */
  get #hasLastLine(): boolean {
    const { lastLine } = this.#options.protocol;
    return this.#finish === undefined && lastLine?.test(this.#tail.toString("latin1")) === true;
  }

  get #isStream(): boolean {
    return this.#reader instanceof EventLines;
  }

  /** Tokens that have passed, as far as the response shows: at least one in each event, which may bring many. */
  #passed(): number {
    const { maxOutput = Number.POSITIVE_INFINITY } = this.#options;
    const { bytes, events } = this.#reader;
    return Math.min(
      Math.max(events, Math.ceil((bytes - events * eventFrame) / bytesPerToken)),
      Math.max(maxOutput, events),
    );
  }

  #captured(path: string, value: unknown): void {
    const { protocol } = this.#options;
    if (errorPaths.includes(path) || lateErrorPaths.includes(path)) {
      if (typeof value === "string") this.error ??= value;
      return;
    }
    const finish = protocol.finish(path, value);
    if (finish !== undefined && (this.#finish === undefined || ranks[finish] > ranks[this.#finish]))
      this.#finish = finish;
    if (protocol.finishPaths.some((finishPath) => finishPath.toLowerCase() === path)) return;
    if (typeof value !== "object" || value === null) return;
    this.#isCounted = true;
    this.#counted = protocol.count(this.#counted, path, value);
  }

  #tell(): void {
    const { price, model, exchange } = this.#options;
    const before = this.#reported;
    const now = this.#counted;
    if (isSame(before, now)) return;
    this.#reported = now;
    exchange.used({
      model,
      input: now.input - before.input,
      cached: now.cached - before.cached,
      cacheWritten: now.cacheWritten - before.cacheWritten,
      output: now.output - before.output,
      reasoning: now.reasoning - before.reasoning,
      ...(price === undefined ? {} : { cost: costOf(now, price) - costOf(before, price) }),
    });
  }
}

function readerOf(contentType: string, scan: () => JsonScan, paths: readonly string[]): ResponseReader {
  const words = [...new Set(paths.map((path) => path.slice(path.lastIndexOf(".") + 1)))];
  if (contentType.startsWith("text/event-stream")) return new EventLines(scan, words);
  if (contentType.startsWith("application/vnd.amazon.eventstream")) return new AwsEvents(scan);
  return new WholeDocument(scan());
}

function isSame(one: Counted, other: Counted): boolean {
  return (
    one.input === other.input &&
    one.cached === other.cached &&
    one.cacheWritten === other.cacheWritten &&
    one.output === other.output &&
    one.reasoning === other.reasoning
  );
}
