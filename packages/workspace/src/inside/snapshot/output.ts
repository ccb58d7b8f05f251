import { writeSync } from "node:fs";

const wait = new Int32Array(new SharedArrayBuffer(4));
const stdout = 1;

/** Stdout, written in large pieces: a snapshot has thousands of small files. */
export class Output {
  readonly #buffer = Buffer.allocUnsafe(1_048_576);
  #used = 0;

  write(bytes: Buffer): undefined {
    if (bytes.length > this.#buffer.length - this.#used) this.flush();
    if (bytes.length > this.#buffer.length) return writeAll(bytes);
    bytes.copy(this.#buffer, this.#used);
    this.#used += bytes.length;
  }

  flush(): undefined {
    writeAll(this.#buffer.subarray(0, this.#used));
    this.#used = 0;
  }
}

function writeAll(bytes: Buffer): undefined {
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(stdout, bytes, at);
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EAGAIN")) throw error;
      Atomics.wait(wait, 0, 0, 1);
    }
  }
}
