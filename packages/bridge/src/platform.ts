import type { Readable, Writable } from "node:stream";
import type { SandboxFailed } from "@ambit/core/plugin";

/**
 * A bidirectional pipe to a command in the sandbox: what is written is its standard input, what is read its
 * standard output. It must carry lines of UTF-8 below 16 KB without NUL, and nothing else.
 */
export interface Pipe {
  /** In pieces of any size. Ends or errors when the pipe is lost: the bridge opens another, and nothing is lost. */
  readonly output: ReadableStream<Uint8Array>;
  /** Complete lines, several at once, each with its line feed. Rejects if they may not have arrived. */
  write(lines: string): Promise<void>;
  /** Ends the command and frees the platform's resources. Safe to call twice; doesn't reject if it has already ended. */
  close(): Promise<void>;
}

/**
 * A bidirectional pipe to a command in the sandbox with the guarantees of a kernel pipe: any bytes, in order, without
 * loss, as long as the sandbox exists. It isn't replaced: its end is the end of the sandbox.
 */
export interface DirectPipe {
  /** The command's standard output. Ends, errors or closes when the pipe is lost. */
  readonly output: Readable;
  /** The command's standard input. Its end reaches the command. */
  readonly input: Writable;
  /** Frees the platform's resources. Safe to call twice; doesn't reject if it has already ended. */
  close(): Promise<void>;
}

/** The same for any bytes: no encoding, and so several times as fast. */
export interface BinaryPipe extends Omit<Pipe, "write"> {
  /** Any bytes, at most 256 KB, whose memory is used again once it has settled. Rejects if they may not have arrived. */
  write(bytes: Uint8Array): Promise<void>;
}

interface Platform {
  /**
   * Settles when commands can be started: its image is there, its container runs. Called once, before everything else, with no
   * time limit but the opening's own. Default: they can be started at once.
   *
   * @throws SandboxFailed when that will never be.
   */
  ready?(signal: AbortSignal): Promise<void>;
  /** Writes one file, readable by everyone, and creates missing folders. */
  upload(path: string, content: Uint8Array, signal: AbortSignal): Promise<void>;
  /** Destroys the sandbox with everything in it. Safe to call twice. */
  destroy(): Promise<void>;
}

/** What a backend implements: three primitives on one sandbox that it has created. */
export interface RemotePlatform extends Platform {
  /**
   * Starts a command in the sandbox, with no terminal.
   *
   * @throws SandboxFailed when the sandbox itself is gone or can't be used any more: nothing is tried again. Whatever
   * else is thrown counts as a dropped connection, and is retried.
   */
  openPipe(argv: readonly [program: string, ...args: string[]], signal: AbortSignal): Promise<Pipe>;
}

/** The same for a platform whose pipes carry any bytes: a kubelet's, behind an API server. */
export interface BinaryPlatform extends Platform {
  /**
   * A pipe to the command of `firstCommandOf`, which has been given its input, whether or not all has arrived. It is used before
   * any other. Default: the guest daemon is uploaded, and started by the command of the first pipe that is opened.
   */
  readonly firstPipe?: BinaryPipe;
  /** @throws SandboxFailed as `openPipe` */
  openBinaryPipe(
    argv: readonly [program: string, ...args: string[]],
    signal: AbortSignal,
  ): Promise<BinaryPipe>;
}

/** The same for a platform whose pipes are binary and break only with the sandbox: several times as fast. */
export interface DirectPlatform extends Platform {
  /** Whether the command has been given the input of `directCommandOf`. Default: the bridge gives it. */
  readonly hasProgram?: boolean;
  /** Starts a command in the sandbox, with no terminal. Called once. Whatever is thrown fails the opening. */
  openDirectPipe(
    argv: readonly [program: string, ...args: string[]],
    signal: AbortSignal,
  ): Promise<DirectPipe>;
  /**
   * Why the pipe ended, such as a memory limit that the platform knows of. Called when it has ended; undefined: it
   * doesn't know. Default: the pipe's own error.
   */
  whyLost?(signal: AbortSignal): Promise<SandboxFailed | undefined>;
}
