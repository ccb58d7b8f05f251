import type { Transform } from "node:stream";
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createZstdDecompress,
} from "node:zlib";
import { type Share, SharedBudget } from "../limits.js";

interface Coding {
  readonly open: () => Transform;
  /** What one decoder holds at most, outside V8's heap, which doesn't count it. Measured. */
  readonly costMb: number;
}

/** An answer may request a window of up to 128 MiB; senders over HTTP may use 8 (RFC 9659). */
const zstdWindowLog = 23;

const gzip: Coding = { open: createGunzip, costMb: 1 };
const codings: Readonly<Record<string, Coding>> = {
  gzip,
  "x-gzip": gzip,
  deflate: { open: createInflate, costMb: 1 },
  // The format's own limit is 16 MiB; a larger window needs an option that isn't set.
  br: { open: createBrotliDecompress, costMb: 20 },
  zstd: {
    open: () => createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: zstdWindowLog } }),
    costMb: 11,
  },
};

/** Decoders of all sessions. Responses are requested without an encoding, so few servers cause one. */
const maxDecodersMb = 128;
const ofThisProcess = new SharedBudget(maxDecodersMb);

/** One session's decoders of encoded responses, within what all sessions may have. */
export class Decoders {
  readonly #share: Share;

  constructor(budget: SharedBudget = ofThisProcess) {
    this.#share = budget.join();
  }

  /** @returns `unknown` for a coding that can't be decoded, `busy` if there are too many decoders already. */
  open(name: string): Transform | "unknown" | "busy" {
    const coding = Object.hasOwn(codings, name) ? codings[name] : undefined;
    if (coding === undefined) return "unknown";
    const { open, costMb } = coding;
    if (!this.#share.take(costMb)) return "busy";
    return open().once("close", () => this.#share.release(costMb));
  }

  /** The session is closed; open decoders close with their connections. */
  close(): void {
    this.#share.leave();
  }
}
