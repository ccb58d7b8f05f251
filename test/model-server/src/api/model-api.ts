import type { Usage } from "../answer.js";
import type { ResolvedCall } from "../tools.js";
import type { ModelTurn } from "../turn.js";

/** A message answer with every default filled in and every tool found. */
export interface Reply {
  readonly model: string;
  readonly thought: string;
  readonly chunks: readonly string[];
  readonly pauseMs: number;
  readonly calls: readonly ResolvedCall[];
  readonly usage: Usage;
}

/** One server-sent event. */
export interface Frame {
  readonly event?: string;
  readonly data: string;
  /** Milliseconds to wait after it. Default 0. */
  readonly pauseMs?: number;
}

/** What the path of a request says that the body doesn't (Gemini names model and streaming there). */
export interface RequestTarget {
  readonly model?: string;
  readonly streamed?: boolean;
}

/** One wire format. Every method is pure but for fresh ids and the date in what it returns. */
export interface ModelApi {
  /** @throws ZodError for a body that this API would refuse. */
  readTurn(body: unknown, target: RequestTarget): ModelTurn;
  /** The whole answer as one JSON body. */
  completion(reply: Reply): unknown;
  /** The whole answer as a stream. `body` is the request's: some APIs let it choose what the stream holds. */
  frames(reply: Reply, body: unknown): Iterable<Frame>;
  /** Body of a token count; undefined where the API has none. */
  tokenCount(): unknown;
  modelList(models: readonly string[]): unknown;
  error(status: number, message: string): unknown;
}

/** An id that no other answer has; agents match tool results by it. */
export function freshId(prefix: string): string {
  return `${prefix}${crypto.randomUUID().replaceAll("-", "").slice(0, 24)}`;
}

/** The time as most APIs give it: whole seconds since 1970. */
export function unixSeconds(): number {
  return Math.floor(Date.now() / 1000);
}

/** JSON arguments in two pieces, as a model streams them: a client that takes the first for all fails. */
export function inTwoPieces(json: string): readonly string[] {
  const middle = Math.ceil(json.length / 2);
  return [json.slice(0, middle), json.slice(middle)];
}
