import type { Process } from "@ambit/core/plugin";
import { inTurns } from "@ambit/json-turns";
import {
  deserializeMessage,
  type JSONRPCMessage,
  serializeMessage,
  type Transport,
} from "@modelcontextprotocol/client";
import type { MessageGuard } from "../message-guard.js";

/** Characters of a line of stray output that are reported. */
const maxStray = 200;

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
  #closed = false;
  #unread = 0;

  constructor(
    readonly process: Process,
    readonly guard: MessageGuard,
  ) {
    this.#writer = process.stdin.getWriter();
  }

  async start(): Promise<void> {
    this.#read().catch((error: unknown) => this.#fail(error));
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const bytes = new TextEncoder().encode(serializeMessage(message));
    const cost = bytes.length + costOfOne;
    if (this.#unread + cost > maxUnread) throw new Error("it doesn't read its input");
    this.#unread += cost;
    try {
      await this.#writer.write(bytes);
    } finally {
      this.#unread -= cost;
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    // Closing its input asks a server to exit; one that has exited already can't be asked, and one that doesn't read
    // would never have been.
    const asked = this.#writer.close().catch(() => {});
    if (this.#unread === 0) await asked;
    await this.process.kill();
    this.onclose?.();
  }

  async #read(): Promise<void> {
    const lines = this.guard.lines();
    for await (const chunk of inTurns(this.process.stdout)) {
      for (const line of lines.push(chunk)) {
        if (line.trim() === "") continue;
        // Stray output isn't counted: it may look like anything.
        const admitted = line.trimStart().startsWith("{") ? await this.guard.admit(line) : undefined;
        this.#receive(admitted ?? line.slice(0, maxStray));
      }
    }
    await this.close();
  }

  /** A line that isn't a message is stray output: it is reported and skipped. */
  #receive(line: string): void {
    try {
      this.onmessage?.(deserializeMessage(line));
    } catch (error) {
      this.onerror?.(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #fail(error: unknown): void {
    this.onerror?.(error instanceof Error ? error : new Error(String(error)));
    void this.close();
  }
}
