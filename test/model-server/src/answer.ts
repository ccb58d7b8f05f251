export type JsonObject = Readonly<Record<string, unknown>>;

/** Made-up numbers of tokens, which appear in the API's own fields. `input` includes `cachedInput`. */
export interface Usage {
  readonly input: number;
  readonly cachedInput: number;
  readonly output: number;
}

export const DEFAULT_USAGE: Usage = { input: 1200, cachedInput: 200, output: 50 };

/**
 * A tool call by name, or a shell command by any shell tool that the agent offers.
 * `tool` is matched against the offered tools: the exact name, or its last words (`lookup` finds
 * `mcp__ambit__lookup`), or a part of it. A leading `=` sends the rest as it is, offered or not.
 */
export type ScriptedCall = { readonly tool: string; readonly input: JsonObject } | { readonly shell: string };

export interface MessageAnswer {
  readonly kind: "message";
  /** Reasoning, sent before the text in the API's own form. Default none. */
  readonly thought?: string;
  /** Each is one chunk of a stream. Default none. */
  readonly chunks?: readonly string[];
  /** Milliseconds between two chunks of a stream. Default 0. */
  readonly pauseMs?: number;
  /** Calls in one response are parallel. Default none. */
  readonly calls?: readonly ScriptedCall[];
  /**
   * How the response ends. `cut`: properly, but before the API says that it is finished, and in the middle of the last call's
   * arguments if it has calls. `max_tokens`: at its limit of tokens, at the same place. Default: when it is finished.
   */
  readonly end?: "cut" | "max_tokens";
  /** Default {@link DEFAULT_USAGE}. */
  readonly usage?: Usage;
}

export type Answer =
  | MessageAnswer
  /** An error with this status, in the API's own shape. */
  | { readonly kind: "http"; readonly status: number; readonly message?: string }
  /** Sends nothing, not even headers, until the client disconnects or the server closes. */
  | { readonly kind: "hang" }
  /** Cuts the connection: a stream after its first half, otherwise before the headers. */
  | { readonly kind: "drop" };

/** A text response that ends the turn, in about four chunks. */
export function say(text: string): MessageAnswer {
  return { kind: "message", chunks: chunksOf(text) };
}

/** A response with one tool call. */
export function call(tool: string, input: JsonObject = {}): MessageAnswer {
  return { kind: "message", calls: [{ tool, input }] };
}

/** A response with one shell command. */
export function shell(command: string): MessageAnswer {
  return { kind: "message", calls: [{ shell: command }] };
}

/** The text in at most four pieces, split after white space. */
export function chunksOf(text: string): readonly string[] {
  const words = text.match(/\s*\S+\s*/g) ?? (text === "" ? [] : [text]);
  const size = Math.ceil(words.length / 4);
  const chunks: string[] = [];
  for (let start = 0; start < words.length; start += size) {
    chunks.push(words.slice(start, start + size).join(""));
  }
  return chunks;
}
