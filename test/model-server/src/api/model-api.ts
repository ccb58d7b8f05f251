import type { Usage } from "../answer.js";
import type { ResolvedCall } from "../tools.js";
import type { ModelTurn } from "../turn.js";

/** A response with a message, with all defaults and resolved tools. */
export interface Reply {
  readonly model: string;
  readonly thought: string;
  readonly chunks: readonly string[];
  readonly pauseMs: number;
  readonly calls: readonly ResolvedCall[];
  readonly usage: Usage;
  readonly end: "finished" | "cut" | "max_tokens";
}

/** One server-sent event. */
export interface Frame {
  readonly event?: string;
  readonly data: string;
  /** Milliseconds to wait after it. Default 0. */
  readonly pauseMs?: number;
  /** `rest`: what follows the first part of a call's arguments. `finish`: what says that the response is finished. */
  readonly tail?: "rest" | "finish";
}

/** The frames of a response that ends early. Pure. */
export function* untilEnd(frames: Iterable<Frame>, end: Reply["end"]): Iterable<Frame> {
  for (const frame of frames) {
    if (end === "cut" && frame.tail !== undefined) return;
    if (end === "max_tokens" && frame.tail === "rest") continue;
    yield frame;
  }
}

/** From a request's path, if the API has it there: Gemini's model and streaming. */
export interface RequestTarget {
  readonly model?: string;
  readonly streamed?: boolean;
}

/** One wire format. Every method is pure, except for new ids and the date in its result. */
export interface ModelApi {
  /** @throws ZodError if this API would refuse the body. */
  readTurn(body: unknown, target: RequestTarget): ModelTurn;
  /** The response as one JSON body. */
  completion(reply: Reply): unknown;
  /** The response as a stream. `body` is the request's: in some APIs it selects the stream's content. */
  frames(reply: Reply, body: unknown): Iterable<Frame>;
  /** Body of a token count; undefined if the API has none. */
  tokenCount(): unknown;
  modelList(models: readonly string[]): unknown;
  error(status: number, message: string): unknown;
}

/** A unique id, by which agents match tool results. */
export function freshId(prefix: string): string {
  return `${prefix}${crypto.randomUUID().replaceAll("-", "").slice(0, 24)}`;
}

/** The time as in most APIs: seconds since 1970. */
export function unixSeconds(): number {
  return Math.floor(Date.now() / 1000);
}

/** JSON arguments in two pieces, as models stream them, so that a client which uses only the first one fails. */
export function inTwoPieces(json: string): readonly string[] {
  const middle = Math.ceil(json.length / 2);
  return [json.slice(0, middle), json.slice(middle)];
}
