import { inspect } from "node:util";
import type { ConnectionDecision, Log } from "@ambit/core/plugin";

/** More than a suite's sandboxes log. */
const maxCharacters = 4_000_000;

/** A backend's log of its sandboxes, and its decisions on connections. */
export class SandboxRecord {
  #text = "";

  readonly log: Log = {
    debug: (fields, message) => this.keep({ message, fields }),
    info: (fields, message) => this.keep({ message, fields }),
    warn: (fields, message) => this.keep({ message, fields }),
    error: (fields, message) => this.keep({ message, fields }),
  };

  get text(): string {
    return this.#text;
  }

  keep(entry: ConnectionDecision | object): void {
    // Not as JSON, which omits an error's message.
    if (this.#text.length < maxCharacters) this.#text += `${inspect(entry, { depth: 8 })}\n`;
  }
}
