import { JsonScan } from "../json-scan.js";
import type { HeldShare } from "./held-bytes.js";
import type { Place } from "./provider-tools.js";

/** A request's body, and the values in it that are checked. */
export interface ReadBody {
  readonly parts: readonly Buffer[];
  readonly size: number;
  readonly model: string | undefined;
  readonly streamed: boolean;
  /** The position of `stream_options`, for an API that has it. */
  readonly streamOptions:
    | { readonly start: number; readonly end: number; readonly value: unknown }
    | undefined;
  /** What it asks the provider to do beyond the model. */
  readonly beyond: string | undefined;
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

export interface BodyLimits {
  readonly requestBytes: number;
  readonly receiveMs: number;
}

const paths = ["model", "stream", "stream_options", "background"] as const;

/**
 * Receives a whole body before any of it is sent, since a value to check may be at its end. It is scanned as it
 * arrives, so that a large one doesn't delay other runs.
 *
 * @throws BodyRefused
 */
export async function readBody(
  request: Request,
  limits: BodyLimits,
  held: HeldShare,
  signal: AbortSignal,
  places: readonly Place[] = [],
): Promise<ReadBody> {
  const found = new Map<string, { start: number; end: number; value: unknown }>();
  let repeated: string | undefined;
  let beyond: string | undefined;
  const scan = new JsonScan({
    paths: [...paths, ...places.map(({ path }) => path)],
    onCaptured: (captured) => {
      const { path } = captured;
      for (const place of places) if (place.path === path) beyond ??= place.asks(captured);
      if (!paths.some((one) => one === path)) return;
      if (found.has(path)) repeated = path;
      found.set(path, captured);
    },
  });
  const parts: Buffer[] = [];
  for await (const part of partsOf(request, limits.receiveMs, signal)) {
    if (scan.offset + part.length > limits.requestBytes) {
      throw new BodyRefused(413, `it is larger than ${limits.requestBytes} bytes`);
    }
    if (!held.take(part.length)) throw new BodyRefused(429, "too many requests are being received");
    scan.feed(part);
    parts.push(part);
  }
  // Two servers may read different ones.
  if (repeated !== undefined) throw new BodyRefused(400, `its body has more than one '${repeated}'`);
  // OpenAI's Responses: the answer comes without its usage, and a budget would never see what it costs.
  const background = found.get("background")?.value ?? false;
  if (background !== false && background !== null)
    throw new BodyRefused(400, "it asks for work in the background, whose usage can't be counted");
  const model = found.get("model")?.value;
  return {
    parts,
    size: scan.offset,
    model: typeof model === "string" ? model : undefined,
    streamed: found.get("stream")?.value === true,
    streamOptions: found.get("stream_options"),
    beyond,
  };
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
