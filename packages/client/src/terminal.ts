import type { Schema } from "./api.js";
import { AmbitError } from "./errors.js";
import type { Http } from "./http.js";
import { recordsThat, StreamCut } from "./records.js";

type TerminalRecord = Schema<"TerminalRecord">;

/** A terminal's size in characters. */
export type TerminalSize = Required<Pick<Schema<"TerminalInput">, "columns" | "rows">>;

export interface TerminalEnd {
  /** The shell's exit code; null if something else ended the terminal. */
  readonly exitCode: number | null;
  /** Why it ended before its shell did. */
  readonly reason?: string | undefined;
}

/** Columns, and rows, that a server takes at most. */
export const maxTerminalSide = 1_000;

/** Characters of one input. */
const maxInputLength = 65_536;

/** Milliseconds without a byte, after which the connection counts as cut: the server sends one every 15 s. */
const silenceMs = 45_000;

/** Milliseconds in which the output of a terminal ends that takes no input because it has ended. */
const endMs = 5_000;

const disconnected = "its connection ended";
const strayed =
  "its input went to a server that doesn't have it: both of its routes must reach the same replica";

/** A shell in the sandbox of a session. It lives as long as its output is read. */
export class Terminal {
  #closedBecause = disconnected;
  #typed = "";
  #size: TerminalSize | undefined;
  #sending: Promise<void> | undefined;

  private constructor(
    readonly id: string,
    readonly http: Http,
    readonly path: string,
    readonly query: Readonly<Record<string, string>>,
    readonly records: AsyncGenerator<TerminalRecord, void, void>,
    readonly leave: AbortController,
  ) {}

  /** @throws AmbitError where the server or the session refuses it; what `signal` is aborted with */
  static async open(
    http: Http,
    path: string,
    query: Readonly<Record<string, string>>,
    size: TerminalSize,
    signal: AbortSignal | undefined,
  ): Promise<Terminal> {
    const leave = new AbortController();
    const response = await http.send(path, {
      method: "POST",
      body: size,
      query,
      accept: "application/x-ndjson",
      signal: signal === undefined ? leave.signal : AbortSignal.any([signal, leave.signal]),
    });
    try {
      const records = recordsOf(response);
      const { value } = await records.next();
      const first = value ?? undefined;
      if (first?.kind === "opened") return new Terminal(first.terminalId, http, path, query, records, leave);
      throw new AmbitError(`the terminal didn't open: ${reasonOf(first)}`, {
        code: "sandbox_failed",
        retryable: true,
      });
    } catch (error) {
      leave.abort();
      signal?.throwIfAborted();
      if (!(error instanceof StreamCut)) throw error;
      throw new AmbitError(`the terminal didn't open: ${error.message}`, {
        code: "unreachable",
        retryable: true,
        cause: error,
      });
    }
  }

  /**
   * What it prints, as bytes, at the pace of its reader: the shell waits for a slow one. To be read once.
   * @returns how it ended
   * @throws AmbitError for a line that is no record of a terminal
   */
  async *output(): AsyncGenerator<Uint8Array, TerminalEnd, void> {
    try {
      for await (const record of this.records) {
        if (record.kind === "output") yield bytesOf(record.data);
        if (record.kind === "ended") return record;
      }
    } catch (error) {
      if (!(error instanceof StreamCut)) throw error;
    } finally {
      this.close();
    }
    return { exitCode: null, reason: this.#closedBecause };
  }

  /** Types a text. Resolves when the terminal has it, or has ended. */
  write(input: string): Promise<void> {
    this.#typed += input;
    return this.#send();
  }

  /** Resolves when the terminal has its new size, or has ended. */
  resize(size: TerminalSize): Promise<void> {
    this.#size = size;
    return this.#send();
  }

  /**
   * Ends the shell, with all that it started.
   * @param reason what its output then says of its end. Default: that its connection ended
   */
  close(reason = disconnected): void {
    if (this.leave.signal.aborted) return;
    this.#closedBecause = reason;
    this.leave.abort();
  }

  /** One request after the other, since each is answered once the terminal has it: what comes meanwhile waits for the next. */
  #send(): Promise<void> {
    if (this.#typed === "" && this.#size === undefined) return this.#sending ?? Promise.resolve();
    this.#sending ??= this.#sendAll();
    return this.#sending;
  }

  async #sendAll(): Promise<void> {
    try {
      while (this.#typed !== "" || this.#size !== undefined) {
        const end =
          this.#typed.length > maxInputLength ? wholeCharacters(this.#typed, maxInputLength) : undefined;
        const input = this.#typed.slice(0, end);
        const body = { ...this.#size, ...(input === "" ? {} : { input }) };
        this.#typed = end === undefined ? "" : this.#typed.slice(end);
        this.#size = undefined;
        const path = `${this.path}/${encodeURIComponent(this.id)}`;
        const { query, leave } = this;
        await this.http.send(path, { method: "POST", body, query, signal: leave.signal });
      }
    } catch (error) {
      if (this.leave.signal.aborted) return;
      if (!(error instanceof AmbitError && error.status === 404)) throw error;
      await this.#untilClosed();
      this.close(strayed);
    } finally {
      this.#sending = undefined;
    }
  }

  /** Resolves when its output has ended, or lives on for longer than that of a terminal that has ended. */
  #untilClosed(): Promise<void> {
    const { signal } = this.leave;
    return new Promise((resolve) => {
      const leave = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", leave);
        resolve();
      };
      const timer = setTimeout(leave, endMs);
      signal.addEventListener("abort", leave);
      if (signal.aborted) leave();
    });
  }
}

async function* recordsOf({ body }: Response): AsyncGenerator<TerminalRecord, void, void> {
  if (body === null) return;
  yield* recordsThat(body, silenceMs, isTerminalRecord);
}

const kinds: ReadonlySet<unknown> = new Set<TerminalRecord["kind"]>(["opened", "output", "ended"]);

/** The server is trusted to follow its own contract, within a record's kind. */
const isTerminalRecord = (value: unknown): value is TerminalRecord =>
  typeof value === "object" && value !== null && "kind" in value && kinds.has(value.kind);

const reasonOf = (record: TerminalRecord | undefined) =>
  (record?.kind === "ended" ? record.reason : undefined) ?? "the server said nothing of it";

/** A place at most that far, which isn't in the middle of a character. */
const wholeCharacters = (text: string, length: number) =>
  /[\uD800-\uDBFF]/.test(text.charAt(length - 1)) ? length - 1 : length;

const bytesOf = (base64: string) => Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
