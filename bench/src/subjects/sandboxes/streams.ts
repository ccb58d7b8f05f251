import type { RemoteSandbox } from "@ambit/bridge";
import { timed } from "../../measure.js";

export type Argv = readonly [string, ...string[]];

/** A command's streams, over the bridge or the platform's own way. */
export interface Streams {
  readonly output: ReadableStream<Uint8Array>;
  write(bytes: Uint8Array): Promise<void>;
  end(): Promise<unknown>;
}

export const hello: Argv = ["/bin/echo", "here"];
export const cat: Argv = ["/bin/cat"];
const line = Buffer.from(`${"x".repeat(99)}\n`);

/** A command that prints this many bytes of text. */
export const lines = (bytes: number): Argv => [
  ...(["/bin/sh", "-c", 'yes "some text, line after line" | head -c "$0"'] as const),
  `${bytes}`,
];

const piece = Buffer.alloc(1_048_576, "some text, line after line\n");

/** A command that reads this many bytes, and then says so. */
export const reading = (bytes: number): Argv => [
  ...(["/bin/sh", "-c", 'head -c "$0" > /dev/null; echo read'] as const),
  `${bytes}`,
];

/** Gives such a command its input, a multiple of a MiB, until it has read it. */
export async function giveAll({ output, write, end }: Streams, bytes: number): Promise<void> {
  for (let given = 0; given < bytes; given += piece.length) await write(piece);
  await readBytes(output, 1);
  await end();
}

/** Over the bridge. */
export async function spawned(sandbox: RemoteSandbox, argv: Argv): Promise<Streams> {
  const child = await sandbox.spawn({ argv, env: { PATH: "/usr/bin:/bin" } });
  const writer = child.stdin.getWriter();
  return { output: child.stdout, write: (bytes) => writer.write(bytes), end: () => child.kill() };
}

export async function all(output: ReadableStream<Uint8Array>): Promise<void> {
  for await (const _ of output);
}

/** Reads this many bytes, and leaves the stream open. */
export async function readBytes(output: ReadableStream<Uint8Array>, count: number): Promise<void> {
  const reader = output.getReader();
  for (let read = 0; read < count; ) read += (await reader.read()).value?.length ?? count;
  reader.releaseLock();
}

/** Milliseconds of this many echoes of 100 bytes, one after the other, by a command that returns what it gets. */
export async function echoes({ output, write, end }: Streams, rounds: number): Promise<number> {
  const echo = async () => {
    await write(line);
    await readBytes(output, line.length);
  };
  await echo();
  const ms = await timed(async () => {
    for (let round = 0; round < rounds; round += 1) await echo();
  });
  await end();
  return ms;
}
