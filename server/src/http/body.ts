import type { IncomingMessage } from "node:http";
import { JsonTooLarge, parseBoundedJson } from "@ambit/core/contract";
import { KeptText, turnForText } from "@ambit/core/plugin";
import { malformed } from "../results.js";
import { HttpRefusal } from "./response/refusal.js";

/** Limits on all bodies that are being received. */
export interface BodyLimits {
  /** Concurrent bodies. */
  readonly atOnce: number;
  /** Total bytes. */
  readonly totalBytes: number;
  /** Milliseconds for one body. */
  readonly bodyMs: number;
}

/** Bytes of memory per byte of JSON while it is parsed: the text, and its values, which are mostly small. */
const parsedFactor = 6;

/**
 * What one body may hold: it bounds what parsing and checking it cost. The levels bound only the parser; the request's own
 * limit names the field.
 */
const jsonLimits = { maxValues: 100_000, maxDepth: 8_192 };

interface Reading {
  bytes: number;
  /** Aborts it with 408. */
  cut(): void;
}

/**
 * Reads the bodies of all requests. A slow one doesn't block others: beyond the limits, the body
 * that has taken longest is aborted in favour of the new one, so that slow senders only displace each other.
 */
export class Bodies {
  /** The set keeps the order in which they began. */
  readonly #readings = new Set<Reading>();
  #bytes = 0;

  constructor(
    readonly limits: BodyLimits,
    /** Throws when that many bytes aren't available. */
    readonly requireMemory: (bytes: number) => void,
  ) {}

  /**
   * The request's body as JSON; an empty one is `{}`. Its bytes are counted: `content-length` isn't trusted, but one
   * that is too large is refused before a byte is read.
   *
   * @throws HttpRefusal 413 beyond `limitBytes`, 408 when it comes too slowly; MalformedJson, AtCapacity
   */
  async json(incoming: IncomingMessage, limitBytes: number): Promise<unknown> {
    if (Number(incoming.headers["content-length"] ?? 0) > limitBytes) throw tooLarge(limitBytes);
    const text = await this.#read(incoming, limitBytes);
    if (!/\S/.test(text)) return {};
    await turnForText(text.length);
    this.requireMemory(text.length * parsedFactor);
    try {
      return parseBoundedJson(text, { ...jsonLimits, maxLength: limitBytes });
    } catch (error) {
      if (error instanceof JsonTooLarge)
        throw new HttpRefusal(413, `The body ${error.message}: send less.`, "request_invalid");
      throw error instanceof SyntaxError ? malformed(error) : error;
    }
  }

  #read(incoming: IncomingMessage, limitBytes: number): Promise<string> {
    return new Promise((resolve, reject) => {
      const text = new KeptText();
      const end = (settle: () => void) => {
        clearTimeout(timer);
        incoming.off("data", take).off("end", whole).off("error", fail).off("close", onDisconnect).pause();
        // Later errors of an abandoned body are ignored.
        incoming.on("error", () => {});
        this.#readings.delete(reading);
        this.#bytes -= reading.bytes;
        reading.bytes = 0;
        settle();
      };
      const fail = (error: Error) => end(() => reject(error));
      const onDisconnect = () => fail(new Error("the caller left in the middle of its request"));
      const whole = () => end(() => resolve(text.take()));
      const take = (chunk: Buffer) => {
        reading.bytes += chunk.length;
        this.#bytes += chunk.length;
        if (reading.bytes > limitBytes) return fail(tooLarge(limitBytes));
        text.push(chunk);
        this.#makeRoom();
      };
      const reading: Reading = { bytes: 0, cut: () => fail(tooSlow(this.limits.bodyMs)) };
      const timer = setTimeout(reading.cut, this.limits.bodyMs);
      this.#readings.add(reading);
      this.#makeRoom();
      incoming.on("data", take).once("end", whole).once("error", fail).once("close", onDisconnect);
    });
  }

  #makeRoom(): void {
    const { atOnce, totalBytes } = this.limits;
    while (this.#readings.size > atOnce || (this.#bytes > totalBytes && this.#readings.size > 1)) {
      const [oldest] = this.#readings;
      oldest?.cut();
    }
  }
}

// The rest of the body isn't read, so the connection can't carry another request.
const headers = { connection: "close" };

function tooLarge(limitBytes: number): HttpRefusal {
  const limit = limitBytes.toLocaleString("en");
  return new HttpRefusal(
    413,
    `The body is larger than ${limit} bytes: send less.`,
    "request_invalid",
    headers,
  );
}

function tooSlow(bodyMs: number): HttpRefusal {
  const message = `The body didn't arrive within ${bodyMs / 1_000} s, or had to make room for others: send it faster.`;
  return new HttpRefusal(408, message, "request_invalid", headers);
}
