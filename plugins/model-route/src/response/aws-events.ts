import { KeptPieces } from "@ambit/core/plugin";
import type { JsonScan } from "../json-scan.js";
import type { ResponseReader } from "./readers.js";

/** A message's prelude: total length, headers' length, checksum. */
const prelude = 12;
const checksum = 4;
/** A longer message is skipped: those with token counts are short. */
const maxMessageLength = 1_048_576;

/** `{"bytes":"…"}`, the wrapper of models' own events. */
const wrapped = /^\s*\{\s*"bytes"\s*:\s*"([A-Za-z0-9+/=]+)"/;

/** Messages of `application/vnd.amazon.eventstream`. The agent checks the checksums. */
export class AwsEvents implements ResponseReader {
  bytes = 0;
  events = 0;
  #parts = new KeptPieces();
  #held = 0;
  /** Remaining bytes of the current message; undefined until its length is known. */
  #missing: number | undefined;
  #isLong = false;

  constructor(readonly newScan: () => JsonScan) {}

  push(bytes: Buffer): void {
    this.bytes += bytes.length;
    let rest = bytes;
    while (rest.length > 0) {
      const wanted = this.#missing ?? 4 - this.#held;
      const taken = rest.subarray(0, wanted);
      rest = rest.subarray(taken.length);
      if (!this.#isLong) this.#parts.push(taken);
      this.#held += taken.length;
      if (this.#missing === undefined) {
        if (this.#held === 4) this.#begin();
      } else {
        this.#missing -= taken.length;
      }
      if (this.#missing === 0) this.#end();
    }
  }

  #begin(): void {
    const begun = this.#parts.take();
    const length = begun.readUInt32BE();
    this.#isLong = length > maxMessageLength;
    if (!this.#isLong) this.#parts.push(begun);
    // No valid message is shorter: one that claims to be would never end.
    this.#missing = Math.max(prelude + checksum, length) - 4;
  }

  #end(): void {
    this.events += 1;
    if (!this.#isLong) {
      const message = this.#parts.take();
      const payload = message.subarray(prelude + message.readUInt32BE(4), message.length - checksum);
      const inner = wrapped.exec(payload.toString("latin1"))?.[1];
      this.newScan().feed(inner === undefined ? payload : Buffer.from(inner, "base64"));
    }
    this.#held = 0;
    this.#missing = undefined;
    this.#isLong = false;
  }
}
