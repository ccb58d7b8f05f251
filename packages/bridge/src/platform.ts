import type { Readable, Writable } from "node:stream";
import type { SandboxFailed } from "@ambit/core/plugin";

/**
 * One dumb two-way pipe to a command that runs in the sandbox: what is written is its standard input, what is read its
 * standard output. It carries lines of UTF-8 below 16 KB without NUL, and nothing else need get through.
 */
export interface Pipe {
  /** In pieces of any size. Ends or errors when the pipe is gone: the bridge opens another and nothing is lost. */
  readonly output: ReadableStream<Uint8Array>;
  /** Whole lines, several at once, each with its line feed. Rejects when they may not have arrived. */
  write(lines: string): Promise<void>;
  /** Ends the command and frees what the platform keeps of it. Safe to call twice; never rejects for what is gone. */
  close(): Promise<void>;
}

/**
 * A two-way pipe to a command in the sandbox, of the kernel's own kind: any bytes, in order, none lost, for as long as
 * the sandbox lives. It isn't replaced: its end is the sandbox's.
 */
export interface DirectPipe {
  /** The command's standard output. Ends, errors or closes when the pipe is gone. */
  readonly output: Readable;
  /** The command's standard input. Its end reaches the command. */
  readonly input: Writable;
  /** Frees what the platform keeps of it. Safe to call twice; never rejects for what is gone. */
  close(): Promise<void>;
}

interface Platform {
  /** Writes one file, readable by everyone, and makes the folders in between. */
  upload(path: string, content: Uint8Array, signal: AbortSignal): Promise<void>;
  /** Destroys the sandbox with everything in it. Safe to call twice. */
  destroy(): Promise<void>;
}

/** What a backend brings: three primitives on one sandbox that it has created. */
export interface RemotePlatform extends Platform {
  /**
   * Starts a command in the sandbox, with no terminal.
   *
   * @throws SandboxFailed when the sandbox itself is gone or can't be used any more: nothing is tried again. Whatever
   * else is thrown is a dropped connection, and tried again.
   */
  openPipe(argv: readonly [program: string, ...args: string[]], signal: AbortSignal): Promise<Pipe>;
}

/** The same for a platform whose pipes carry any bytes and break only with the sandbox: several times as fast. */
export interface DirectPlatform extends Platform {
  /** Starts a command in the sandbox, with no terminal. Called once. Whatever is thrown fails the opening. */
  openDirectPipe(
    argv: readonly [program: string, ...args: string[]],
    signal: AbortSignal,
  ): Promise<DirectPipe>;
  /**
   * Why the pipe ended, such as a limit of memory that the platform knows of. Asked when it did; undefined: it doesn't
   * know. Default: the pipe's own words.
   */
  whyLost?(signal: AbortSignal): Promise<SandboxFailed | undefined>;
}
