import { randomUUID } from "node:crypto";
import type { Pipe } from "@ambit/bridge";
import type { Log } from "@ambit/core/plugin";
import { ServiceFailure } from "../platform/failure.js";
import { withRetries } from "../platform/retries.js";
import type { Machine } from "../platform/service.js";
import { shellLine } from "../platform/shell-line.js";
import { openLogStream } from "./log-stream.js";

/** Characters of one request: many lines are sent in one request, but none waits for a large one. */
const maxRequestCharacters = 128 * 1_024;

interface Waiting {
  readonly lines: string;
  resolve(): void;
  reject(error: unknown): void;
}

/**
 * Sends lines in order, one request at a time; lines that arrive meanwhile are sent with the next request. After a
 * failure nothing more is sent: whether the lines arrived is unknown, and later ones mustn't overtake them.
 */
export class InputQueue {
  #waiting: Waiting[] = [];
  #sending = false;
  #failure: { readonly error: unknown } | undefined;

  /** @param send sends one text; the platform adds a line feed to it. */
  constructor(readonly send: (text: string) => Promise<void>) {}

  /** @param lines complete, each with its line feed. */
  write(lines: string): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure.error);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ lines, resolve, reject });
      if (!this.#sending) void this.#sendAll();
    });
  }

  async #sendAll(): Promise<void> {
    this.#sending = true;
    while (this.#waiting.length > 0 && this.#failure === undefined) {
      const batch = this.#next();
      try {
        await this.send(
          batch
            .map(({ lines }) => lines)
            .join("")
            .replace(/\n$/, ""),
        );
        for (const { resolve } of batch) resolve();
      } catch (error) {
        this.#failure = { error };
        for (const { reject } of [...batch, ...this.#waiting]) reject(error);
        this.#waiting = [];
      }
    }
    this.#sending = false;
  }

  #next(): Waiting[] {
    let length = 0;
    const within = this.#waiting.findIndex(({ lines }, index) => {
      length += lines.length;
      return index > 0 && length > maxRequestCharacters;
    });
    return this.#waiting.splice(0, within === -1 ? this.#waiting.length : within);
  }
}

interface SessionPipeOptions {
  readonly machine: Machine;
  readonly argv: readonly [program: string, ...args: string[]];
  readonly apiKey: string;
  readonly connectMs: number;
  readonly log: Log;
}

/** A pipe to a command in a separate session: input by requests, output through the command's log. */
export async function openSessionPipe(options: SessionPipeOptions): Promise<Pipe> {
  const { machine, log } = options;
  const session = `ambit-${randomUUID()}`;
  await machine.startSession(session);
  try {
    const command = await machine.startInSession(session, shellLine(options.argv));
    const stream = openLogStream({
      url: `${machine.toolboxUrl}/process/session/${session}/command/${command}/logs?follow=true`,
      apiKey: options.apiKey,
      connectMs: options.connectMs,
      onStderr: (text) =>
        log.debug({ sandbox: machine.name, text }, "a pipe's command wrote to standard error"),
    });
    const over = new AbortController();
    let hasInput = false;
    const queue = new InputQueue(async (text) => {
      // The platform creates the command's input after its response to the start. Nothing was written then, so it may
      // be sent again. Later, the same failure means that the command has ended.
      await withRetries(
        () => machine.input(session, command, text),
        { retries: 8, limitMs: options.connectMs, signal: over.signal },
        (failure) => !hasInput && failure.status === 500 && /failed to open input pipe/.test(failure.message),
      );
      hasInput = true;
    });
    let closing: Promise<void> | undefined;
    return {
      output: stream.stdout,
      write: (lines) => queue.write(lines),
      close: () => {
        stream.close();
        over.abort();
        closing ??= endSession(machine, session, log);
        return closing;
      },
    };
  } catch (error) {
    await endSession(machine, session, log);
    throw error;
  }
}

/** What can't be ended now ends with the sandbox. */
async function endSession(machine: Machine, session: string, log: Log): Promise<void> {
  try {
    await machine.endSession(session);
  } catch (error) {
    if (error instanceof ServiceFailure && (error.kind === "missing" || error.kind === "gone")) return;
    log.debug({ sandbox: machine.name, session, error }, "a session of a sandbox couldn't be ended");
  }
}
