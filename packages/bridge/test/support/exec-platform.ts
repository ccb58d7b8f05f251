import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { Readable } from "node:stream";
import type {
  BinaryPipe,
  BinaryPlatform,
  DirectPipe,
  DirectPlatform,
  Pipe,
  RemotePlatform,
} from "@ambit/bridge";

/** Carries lines, and any bytes. */
export interface AnyPipe extends Omit<Pipe, "write"> {
  write(written: string | Uint8Array): Promise<void>;
}

/** A platform of this machine: its pipes are commands' standard streams, and a test cuts them when it likes. */
export class ExecPlatform implements RemotePlatform {
  /** Put in front of every command: `unshare`, `nsenter`. */
  readonly prefix: readonly string[];
  readonly pipes = new Set<ChildProcess>();
  opened = 0;
  destroyed = 0;
  /** Thrown by the next opening. */
  refuseWith: Error | undefined;

  constructor(
    readonly folder: string,
    prefix: readonly string[] = [],
  ) {
    this.prefix = prefix;
  }

  async openPipe(argv: readonly [string, ...string[]]): Promise<AnyPipe> {
    if (this.refuseWith !== undefined) throw this.refuseWith;
    this.opened += 1;
    const [program = "", ...rest] = [...this.prefix, ...argv];
    const child = spawn(program, rest, { stdio: ["pipe", "pipe", "ignore"], detached: true });
    this.pipes.add(child);
    child.once("close", () => this.pipes.delete(child));
    child.stdin.on("error", () => undefined);
    await new Promise<void>((resolve, reject) => {
      child.once("error", reject);
      child.once("spawn", resolve);
    });
    return {
      output: Readable.toWeb(child.stdout),
      write: (written) =>
        new Promise<void>((resolve, reject) => {
          child.stdin.write(written, (error) => (error ? reject(error) : resolve()));
        }),
      close: async () => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const closed = new Promise((resolve) => child.once("close", resolve));
        kill(child);
        await closed;
      },
    };
  }

  async upload(path: string, content: Uint8Array): Promise<void> {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content);
  }

  async destroy(): Promise<void> {
    this.destroyed += 1;
    await rm(this.folder, { recursive: true, force: true });
  }

  /** Ends every pipe at once, in the middle of its data. */
  cut(): void {
    for (const child of this.pipes) kill(child);
  }
}

/** With what it has started, for commands in a shell's pipeline. */
function kill(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

/** Pipes whose command has pipes of the kernel, as behind a container's runtime, where Node gives it sockets. */
export const inKernelPipes = ["/bin/sh", "-c", 'cat | "$@" | cat', "sh"] as const;

/** The same platform, with pipes that carry any bytes. */
export function inBytes(platform: ExecPlatform): BinaryPlatform {
  return {
    openBinaryPipe: (argv): Promise<BinaryPipe> => platform.openPipe(argv),
    upload: (path, content) => platform.upload(path, content),
    destroy: () => platform.destroy(),
  };
}

/** The same with one pipe that carries any bytes and lasts. */
export class DirectExecPlatform extends ExecPlatform implements DirectPlatform {
  constructor(
    folder: string,
    readonly whyLost: DirectPlatform["whyLost"] = async () => undefined,
  ) {
    super(folder);
  }

  async openDirectPipe(argv: readonly [string, ...string[]]): Promise<DirectPipe> {
    this.opened += 1;
    const [program = "", ...rest] = [...this.prefix, ...argv];
    const child = spawn(program, rest, { stdio: ["pipe", "pipe", "ignore"], detached: true });
    const closed = new Promise((resolve) => child.once("close", resolve));
    this.pipes.add(child);
    child.once("close", () => this.pipes.delete(child));
    return {
      output: child.stdout,
      input: child.stdin,
      // Its command ends with its input.
      close: async () => void (await closed),
    };
  }
}
