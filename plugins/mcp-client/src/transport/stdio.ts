import { setTimeout as delay } from "node:timers/promises";
import type { Exit, Process } from "@ambit/core/plugin";
import {
  deserializeMessage,
  type JSONRPCMessage,
  serializeMessage,
  type Transport,
} from "@modelcontextprotocol/client";
import { NotSent } from "../failure.js";
import type { MessageGuard } from "../message-guard.js";

/** Milliseconds in which a server that has closed its output ends by itself, so that its exit code is known. */
const exitMs = 250;

/** Bytes of messages that the server hasn't read yet: the answers that it asks for, and calls that were cancelled. */
const maxUnread = 16 * 1024 * 1024;
/** What the smallest message takes while it waits. */
const costOfOne = 1_024;

/** MCP's stdio transport over a process in the sandbox: one JSON message per line (MCP specification, "stdio"). */
export class SandboxStdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: Transport["onmessage"];
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #over = Promise.withResolvers<void>();
  #closed = false;
  #hasEnded = false;
  #exit: Exit | undefined;
  #unread = 0;

  constructor(
    readonly process: Process,
    readonly guard: MessageGuard,
  ) {
    this.#writer = process.stdin.getWriter();
  }

  /** How the server ended by itself; undefined if it was ended here. */
  get exit(): Exit | undefined {
    return this.#exit;
  }

  /** Whether the server's output has ended: no answer comes any more. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  async start(): Promise<void> {
    this.#read().catch((error: unknown) => this.#fail(error));
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const bytes = new TextEncoder().encode(serializeMessage(message));
    const cost = bytes.length + costOfOne;
    if (this.#unread + cost > maxUnread) throw new NotSent("doesn't read its input");
    this.#unread += cost;
    try {
      await this.#writer.write(bytes);
    } catch (error) {
      // A server that has closed its input has mostly ended, and how is known in a moment.
      await Promise.race([this.#over.promise, delay(2 * exitMs, undefined, { ref: false })]);
      throw error;
    } finally {
      this.#unread -= cost;
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#hasEnded = true;
    // Closing its input asks a server to exit; one that has exited already can't be asked, and one that doesn't read
    // would never have been.
    const asked = this.#writer.close().catch(() => {});
    if (this.#unread === 0) await asked;
    try {
      await this.process.kill();
    } finally {
      // Requests wait for it, even where the sandbox is gone.
      this.onclose?.();
      this.#over.resolve();
    }
  }

  async #read(): Promise<void> {
    const lines = this.guard.lines();
    for await (const chunk of this.process.stdout) {
      for (const line of lines.push(chunk)) {
        if (line.trim() === "") continue;
        // Stray output isn't counted: it may look like anything.
        const admitted = line.trimStart().startsWith("{") ? this.guard.admit(line) : undefined;
        if (admitted === undefined) this.guard.noteStray(line);
        else this.#receive(admitted);
      }
    }
    this.#hasEnded = true;
    this.#exit = await Promise.race([this.process.exit, delay(exitMs, undefined, { ref: false })]);
    await this.close();
  }

  /** A message that isn't JSON-RPC is skipped. */
  #receive(line: string): void {
    try {
      this.onmessage?.(deserializeMessage(line));
    } catch (error) {
      this.onerror?.(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #fail(error: unknown): void {
    this.#hasEnded = true;
    this.onerror?.(error instanceof Error ? error : new Error(String(error)));
    void this.close();
  }
}
