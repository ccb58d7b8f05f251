import { isUtf8 } from "node:buffer";
import {
  type JsonLimits,
  JsonTooLarge,
  KeptPieces,
  type ModelUsage,
  parseCountedJson,
} from "@ambit/core/plugin";
import type { Price } from "../config.js";
import { bytesPerToken, costOf } from "../models.js";
import { nothingCounted } from "../protocols/protocol.js";

/** Why a body isn't taken. Completes "its body …". */
class NotStrict extends Error {
  override readonly name = "NotStrict";
}

/**
 * The only value that a body can have, for every parser: one JSON document in UTF-8, without a byte order mark, in
 * whose objects no key is repeated.
 *
 * @throws NotStrict
 */
function strictJson(bytes: Buffer, limits: JsonLimits): unknown {
  if (!isUtf8(bytes)) throw new NotStrict("isn't UTF-8");
  // A byte order mark stays, and isn't JSON.
  const text = bytes.toString("utf8");
  try {
    const { value, members } = parseCountedJson(text, limits);
    // `JSON.parse` keeps the last of two members with the same key.
    if (keysIn(value) !== members) throw new NotStrict("repeats a key within an object");
    return value;
  } catch (error) {
    if (error instanceof JsonTooLarge) throw new NotStrict(error.message, { cause: error });
    if (error instanceof SyntaxError) throw new NotStrict("isn't JSON", { cause: error });
    throw error;
  }
}

function keysIn(document: unknown): number {
  let keys = 0;
  const open: unknown[] = [document];
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (typeof value !== "object" || value === null) continue;
    const inner: readonly unknown[] = Object.values(value);
    if (!Array.isArray(value)) keys += inner.length;
    for (const member of inner) if (typeof member === "object" && member !== null) open.push(member);
  }
  return keys;
}

/** A request's body. Only what is read from `value` is decided on, and only `value` is sent. */
export interface ReadBody {
  readonly value: Readonly<Record<string, unknown>>;
  /** Bytes, as it arrived. */
  readonly size: number;
  readonly model: string | undefined;
  readonly streamed: boolean;
}

/** The body can't be carried. */
export class BodyRefused extends Error {
  override readonly name = "BodyRefused";
  constructor(
    readonly status: 400 | 408 | 413 | 429,
    reason: string,
  ) {
    super(reason);
  }
}

interface RequestBodyLimits {
  readonly requestBytes: number;
  readonly requestValues: number;
  readonly receiveMs: number;
}

const maxDepth = 256;
/** Keys that are decided on here: no other key may be read as one of them. */
const decisive: readonly string[] = ["model", "stream", "stream_options", "background", "max_tokens"];

/**
 * Receives a whole body before any of it is sent, since a value to check may be at its end.
 *
 * @returns undefined for a request without a body.
 * @throws BodyRefused
 */
export async function readBody(
  request: Request,
  limits: RequestBodyLimits,
  held: HeldShare,
  signal: AbortSignal,
): Promise<ReadBody | undefined> {
  const parts = new KeptPieces();
  let size = 0;
  for await (const part of partsOf(request, limits.receiveMs, signal)) {
    size += part.length;
    if (size > limits.requestBytes) {
      throw new BodyRefused(413, `it is larger than ${limits.requestBytes} bytes`);
    }
    if (!held.take(part.length)) throw new BodyRefused(429, "too many requests are being received");
    parts.push(part);
  }
  if (size === 0) return undefined;
  const { requestBytes, requestValues } = limits;
  return bodyIn(parts.take(), { maxLength: requestBytes, maxValues: requestValues, maxDepth });
}

function bodyIn(bytes: Buffer, limits: JsonLimits): ReadBody {
  const value = documentIn(bytes, limits);
  for (const key of Object.keys(value)) {
    // Some servers read keys without regard to case, and then one of the two.
    const read = key.normalize("NFKC").toLowerCase();
    if (read !== key && decisive.includes(read))
      throw new BodyRefused(400, `its body has '${read}' in another spelling`);
  }
  const { model, stream, background = false } = value;
  // OpenAI's Responses: the answer comes without its usage, and a budget would never see what it costs.
  if (background !== false && background !== null)
    throw new BodyRefused(400, "it asks for work in the background, whose usage can't be counted");
  return {
    value,
    size: bytes.length,
    model: typeof model === "string" ? model : undefined,
    streamed: stream === true,
  };
}

function documentIn(bytes: Buffer, limits: JsonLimits): Readonly<Record<string, unknown>> {
  try {
    const value = strictJson(bytes, limits);
    if (isObject(value)) return value;
  } catch (error) {
    if (error instanceof NotStrict) throw new BodyRefused(400, `its body ${error.message}`);
    throw error;
  }
  throw new BodyRefused(400, "its body isn't a JSON object");
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

async function* partsOf(request: Request, receiveMs: number, signal: AbortSignal): AsyncGenerator<Buffer> {
  if (request.body === null) return;
  const reader = request.body.getReader();
  const stop = (reason: unknown) => void reader.cancel(reason).catch(() => undefined);
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    stop(new Error("too slow"));
  }, receiveMs);
  const abort = () => stop(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (late) throw new BodyRefused(408, `it took longer than ${receiveMs} ms to arrive`);
      signal.throwIfAborted();
      if (done) return;
      yield Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    }
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
    stop(undefined);
  }
}

/** One request's part of the memory. */
interface HeldShare {
  /** @returns false if there isn't enough room. */
  take(bytes: number): boolean;
  /** Releases everything that was taken. */
  giveBack(): void;
}

/** Bytes of requests in memory at once, of all runs. */
export class HeldBytes {
  #held = 0;

  constructor(readonly max: number) {}

  get held(): number {
    return this.#held;
  }

  share(): HeldShare {
    let requestBytes = 0;
    return {
      take: (bytes) => {
        if (this.#held + bytes > this.max) return false;
        this.#held += bytes;
        requestBytes += bytes;
        return true;
      },
      giveBack: () => {
        this.#held -= requestBytes;
        requestBytes = 0;
      },
    };
  }
}

/** Where each API has its limit of output tokens. */
const limits: readonly (readonly string[])[] = [
  ["max_tokens"],
  ["max_completion_tokens"],
  ["max_output_tokens"],
  ["generationConfig", "maxOutputTokens"],
  ["generation_config", "max_output_tokens"],
  ["inferenceConfig", "maxTokens"],
];
/** Where each API has the number of answers to one request. */
const answers: readonly (readonly string[])[] = [["n"], ["generationConfig", "candidateCount"]];

/** What a request may use at most: infinitely much output if it states no limit. Pure. */
export function maxUsage(model: string, body: ReadBody, price: Price | undefined): ModelUsage {
  const stated = limits.flatMap((path) => countIn(body.value, path) ?? []);
  const times = answers.flatMap((path) => countIn(body.value, path) ?? []);
  const counted = {
    ...nothingCounted,
    input: Math.ceil(body.size / bytesPerToken),
    output: Math.max(1, ...times) * (stated.length === 0 ? Number.POSITIVE_INFINITY : Math.max(...stated)),
  };
  const { input, cached, output } = counted;
  return { model, input, cached, output, ...(price === undefined ? {} : { cost: costOf(counted, price) }) };
}

function countIn(value: unknown, [key, ...rest]: readonly string[]): number | undefined {
  if (key === undefined) return typeof value === "number" && value > 0 ? value : undefined;
  if (typeof value !== "object" || value === null) return undefined;
  return countIn(Object.entries(value).find(([name]) => name === key)?.[1], rest);
}

/**
 * The body of a streamed Chat Completions request with the stream's usage enabled: otherwise the provider sends none.
 * Other members of `stream_options` are removed. Pure.
 */
export function askingForUsage({ value, streamed }: ReadBody): ReadBody["value"] {
  if (!streamed) return value;
  const { stream_options: options } = value;
  const asks =
    typeof options === "object" &&
    options !== null &&
    "include_usage" in options &&
    options.include_usage === true;
  return asks ? value : { ...value, stream_options: { include_usage: true } };
}
