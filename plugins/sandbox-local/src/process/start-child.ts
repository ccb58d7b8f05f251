import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { basename } from "node:path";
import type { Readable, Writable } from "node:stream";
import { type Command, codeOf, type Process, SandboxFailed } from "@ambit/core/plugin";
import { readBeginning } from "./host-processes.js";

/** @throws SandboxFailed for arguments or a folder that no program can be started with. */
export function checkCommand({ argv, cwd }: Command): void {
  if (argv.some((argument) => argument.includes("\0"))) {
    throw ofCommand("A program's argument must not contain NUL");
  }
  if (cwd !== undefined && !cwd.startsWith("/")) {
    throw ofCommand(`A program's folder must be an absolute path, but is ${JSON.stringify(cwd)}`);
  }
}

/**
 * @param concerns the capabilities that a failed start disproves: none, if the command names the program.
 * @throws SandboxFailed naming the program, whether the system throws the error or reports it as an event.
 */
export async function startChild(
  program: string,
  args: readonly string[],
  options: SpawnOptions,
  concerns: "host" | "session" = "host",
): Promise<ChildProcess> {
  try {
    const child = spawn(program, args, options);
    await once(child, "spawn");
    return child;
  } catch (error) {
    const code = codeOf(error);
    const why = code === "E2BIG" ? "its arguments and variables are too long (E2BIG)" : (code ?? "unknown");
    const message = `${basename(program)} can't be started: ${why}`;
    throw code === "E2BIG"
      ? ofCommand(message, error)
      : new SandboxFailed(message, { cause: error, concerns });
  }
}

function ofCommand(message: string, cause?: unknown): SandboxFailed {
  return new SandboxFailed(message, { cause, concerns: "session" });
}

/** A started program's three pipes as streams. */
export function pipesOf({
  stdin,
  stdout,
  stderr,
}: ChildProcess): Pick<Process, "stdin" | "stdout" | "stderr"> {
  if (stdin === null || stdout === null || stderr === null) {
    throw new SandboxFailed("A process was started without its three pipes");
  }
  return { stdin: writableOf(stdin), stdout: readableOf(stdout), stderr: readableOf(stderr) };
}

/** Pulled one chunk at a time: unread output stays in the pipe and slows its writer instead of filling memory. */
function readableOf(source: Readable): ReadableStream<Uint8Array> {
  // When the process exits, Node discards what a pipe without a listener still holds.
  source.on("readable", () => undefined);
  const chunks = source.iterator({ destroyOnReturn: true });
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        source.once("error", (error) => controller.error(error));
      },
      async pull(controller) {
        try {
          const next = await chunks.next();
          if (next.done === true) controller.close();
          else controller.enqueue(new Uint8Array(next.value));
        } catch (error) {
          controller.error(error);
        }
      },
      cancel: () => {
        source.destroy();
      },
    },
    { highWaterMark: 0 },
  );
}

/** Each write settles when the pipe took it; if its reader is gone the write fails, never the runner. */
function writableOf(target: Writable): WritableStream<Uint8Array> {
  return new WritableStream<Uint8Array>({
    start(controller) {
      target.on("error", (error) => controller.error(error));
      target.on("close", () => controller.error(new Error("The process no longer reads its standard input")));
    },
    write: (chunk) =>
      new Promise<void>((resolve, reject) => {
        target.write(chunk, (error) => (error ? reject(error) : resolve()));
      }),
    close: () =>
      new Promise<void>((resolve) => {
        // A pipe whose reader is gone never calls back, and closes at most once.
        if (target.destroyed) return resolve();
        target.once("close", resolve);
        target.end(resolve);
      }),
    abort: () => {
      target.destroy();
    },
  });
}

const closeOnExec = 0o2000000;

/**
 * Descriptors of this process that a child would inherit: neither Node nor bubblewrap closes those that the runner's
 * parent left open. Read again for each spawn.
 */
export function inheritableDescriptors(): readonly number[] {
  if (process.platform !== "linux") return [];
  const descriptors = readdirSync("/proc/self/fdinfo").map(Number);
  return descriptors.filter((descriptor) => descriptor > 2 && isInheritable(descriptor));
}

function isInheritable(descriptor: number): boolean {
  try {
    const flags = /^flags:\s+([0-7]+)/m.exec(readBeginning(`/proc/self/fdinfo/${descriptor}`))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & closeOnExec) === 0;
  } catch (error) {
    // The listing's own descriptor is closed by now; so may be any other.
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return false;
    throw error;
  }
}

/**
 * What a child gets at each number: the planned descriptor, `/dev/null` over every other one that it would inherit (where
 * `ignore` is planned, too), and nothing at the rest.
 */
export function descriptorTable<Planned>(
  planned: readonly Planned[],
  inheritable: readonly number[],
  devNull: number,
): readonly (Planned | number | "ignore")[] {
  const table: (Planned | number | "ignore")[] = [...planned];
  for (const descriptor of inheritable) {
    if (descriptor < planned.length && planned[descriptor] !== "ignore") continue;
    while (table.length < descriptor) table.push("ignore");
    table[descriptor] = devNull;
  }
  return table;
}

/** Bytes of a failed launch's standard error that are kept. */
const maxBufferedBytes = 4096;

/** The first part of a stream; the rest is read and discarded, so that its writer can end. */
export async function beginningOf(stream: Readable | null): Promise<string> {
  const beginning: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream ?? []) {
    if (bytes >= maxBufferedBytes) continue;
    const part = Buffer.from(chunk).subarray(0, maxBufferedBytes - bytes);
    bytes += part.length;
    beginning.push(part);
  }
  return Buffer.concat(beginning).toString();
}
