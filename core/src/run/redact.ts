import type { AgentEvent, RunRequest } from "../contract/index.js";

const mark = "[redacted]";
/** Shorter values, and these words, occur in any text: replacing them would hide nothing and garble much. */
const shortestSecret = 4;
const ordinaryWords = new Set(["true", "false", "null", "none"]);

/** Every credential a request carries, as it was given. Pure. */
export function secretsOf(request: RunRequest): readonly string[] {
  const connection = request.modelConnection;
  const authorization = request.toolCallback?.authorization;
  const values = [
    ...(connection?.credentials ?? []).map(({ value }) => value),
    ...Object.values(connection?.endpoint?.headers ?? {}),
    ...(authorization === undefined ? [] : [authorization, authorization.replace(/^\S+\s+/, "")]),
    ...request.customTools.flatMap(({ env }) => Object.values(env ?? {})),
    ...request.mcpServers.flatMap(({ connection }) =>
      connection.type === "stdio"
        ? Object.values(connection.env ?? {})
        : [
            ...Object.values(connection.headers ?? {}),
            ...(connection.credentials ?? []).map(({ value }) => value),
          ],
    ),
    ...headersWithin(request.telemetry),
  ];
  return values.filter((value) => value.length >= shortestSecret && !ordinaryWords.has(value.toLowerCase()));
}

/** `telemetry` is opaque but for its headers, wherever an exporter keeps them. */
function headersWithin(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    key === "headers" && typeof inner === "object" && inner !== null
      ? Object.values(inner).filter((header) => typeof header === "string")
      : headersWithin(inner),
  );
}

/** Takes known secrets out of texts, values and streams, in plain, URL-encoded and base64 form. */
export class Redactor {
  readonly #secrets: readonly string[];
  readonly #pattern: RegExp | undefined;
  /** Per open block: the end of its text that may be the beginning of a secret. */
  readonly #held = new Map<string, string>();

  constructor(secrets: readonly string[]) {
    const forms = secrets.flatMap((secret) => [
      secret,
      encodeURIComponent(secret),
      Buffer.from(secret).toString("base64").replace(/=+$/, ""),
    ]);
    // Longest first: of two secrets, one a beginning of the other, the longer must be taken whole.
    this.#secrets = [...new Set(forms)].sort((a, b) => b.length - a.length);
    this.#pattern =
      this.#secrets.length === 0 ? undefined : new RegExp(this.#secrets.map(escapeRegExp).join("|"), "g");
  }

  text(text: string): string {
    return this.#pattern === undefined ? text : text.replace(this.#pattern, mark);
  }

  /** The same value with every string in it redacted; the value itself when there is nothing to hide. */
  value<Value>(value: Value): Value {
    return this.#pattern === undefined ? value : (this.#redacted(value) as Value);
  }

  /**
   * The events to send instead of this one. A delta's end is held back while it could be the beginning of a
   * secret, so that none slips through between two; the block's end brings what was held.
   */
  event(event: AgentEvent): readonly AgentEvent[] {
    if (this.#pattern === undefined) return [event];
    if (event.type === "message_delta" || event.type === "thought_delta") {
      const delta = this.#delta(event.id, event.delta);
      return delta === "" ? [] : [{ ...event, delta }];
    }
    if (event.type === "message_end" || event.type === "thought_end") {
      const held = this.#held.get(event.id);
      this.#held.delete(event.id);
      if (held === undefined || held === "") return [event];
      const type = event.type === "message_end" ? "message_delta" : "thought_delta";
      return [{ type, id: event.id, delta: held }, event];
    }
    return [this.value(event)];
  }

  #delta(block: string, delta: string): string {
    const text = (this.#held.get(block) ?? "") + delta;
    const start = this.#startOfDoubt(text);
    this.#held.set(block, text.slice(start));
    return this.text(text.slice(0, start));
  }

  /** Where the longest end of `text` begins that is also the beginning of a secret. */
  #startOfDoubt(text: string): number {
    const longest = (this.#secrets[0]?.length ?? 1) - 1;
    const lastMatchEnd = this.#endOfLastMatch(text);
    for (let start = Math.max(lastMatchEnd, text.length - longest); start < text.length; start += 1) {
      const tail = text.slice(start);
      if (this.#secrets.some((secret) => secret.startsWith(tail))) return start;
    }
    return text.length;
  }

  #endOfLastMatch(text: string): number {
    let end = 0;
    for (const match of text.matchAll(this.#pattern ?? /$^/g)) end = match.index + match[0].length;
    return end;
  }

  #redacted(value: unknown): unknown {
    if (typeof value === "string") return this.text(value);
    if (Array.isArray(value)) return value.map((item) => this.#redacted(item));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [this.text(key), this.#redacted(inner)]),
    );
  }
}

function escapeRegExp(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
