import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { delimiter, dirname } from "node:path";
import { isAmbitError, messageOf, OutputsFailed } from "@ambit/core";
import { type Command, endOf, KeptPieces, type Process, type Sandbox } from "@ambit/core/plugin";

/**
 * Reads the program and its wish from stdin, and leaves the rest of it to the program: no file of it is in the sandbox, where
 * the agent could change it.
 */
const loader = `const fs=require("fs"),wait=new Int32Array(new SharedArrayBuffer(4)),module={exports:{}};
function take(count){const all=Buffer.alloc(count);let at=0;while(at<count){let n;
try{n=fs.readSync(0,all,at,count-at)}catch(e){if(e.code!=="EAGAIN")throw e;Atomics.wait(wait,0,0,1);continue}
if(n===0)throw new Error("stdin ended early");at+=n}return all.toString()}
function line(){let text="";for(;;){const one=take(1);if(one==="\\n")return text;text+=one}}
const lengths=line().split(" ").map(Number);
require("vm").runInThisContext("(function(require,module,exports){"+take(lengths[0])+"\\n})")(require,module,module.exports);
module.exports.main(take(lengths[1]))`;

/** A program of Ambit that runs inside sandboxes. */
type InsideProgram = "#collector" | "#snapshots" | "#terminal";

const require = createRequire(import.meta.url);
const programs = new Map<InsideProgram, Promise<Buffer>>();

/** What the program's process gets on stdin first. @param wish travels as JSON, which may name every file of a workspace */
export async function stdinOf(name: InsideProgram, wish: object): Promise<readonly Buffer[]> {
  const program = programs.get(name) ?? readFile(require.resolve(name));
  programs.set(name, program);
  const text = await program;
  const wishText = Buffer.from(JSON.stringify(wish));
  return [Buffer.from(`${text.length} ${wishText.length}\n`), text, wishText];
}

/** The program's process: the agent's user, with none of its variables. */
export function commandOf({ image }: Pick<Sandbox, "image">, signal: AbortSignal): Command {
  return { argv: ["node", "-e", loader], env: { PATH: searchPathOf({ image }) }, role: "agent", signal };
}

/** `PATH` for programs of Ambit's own, and for those that a request names. */
export function searchPathOf({ image }: Pick<Sandbox, "image">): string {
  return image?.searchPath ?? ["/usr/local/bin:/usr/bin:/bin", dirname(process.execPath)].join(delimiter);
}

/** Writes to a process until it has all, or doesn't read any more: its exit code then says why. */
export async function feed(
  { stdin }: Pick<Process, "stdin">,
  input: AsyncIterable<Uint8Array> | readonly Uint8Array[] | Uint8Array,
): Promise<void> {
  const writer = stdin.getWriter();
  try {
    if (input instanceof Uint8Array) await writer.write(input);
    else for await (const bytes of input) await writer.write(bytes);
    await writer.close();
  } catch {
    // The process has ended, or the input failed: the reader of the process learns it.
    await writer.abort().catch(() => {});
  }
}

interface ScriptOptions {
  /** Further variables: the agent's aren't set. */
  readonly env?: Readonly<Record<string, string>>;
  /** The last characters of each stream that are kept. */
  readonly maxCharacters: number;
  readonly signal: AbortSignal;
}

interface ScriptResult {
  readonly stdout: string;
  readonly stderr: string;
  /** Null where a signal ended it. */
  readonly code: number | null;
}

/** Runs a script of Ambit's own with the sandbox's shell, as the agent's user. @throws SandboxFailed; the signal's reason */
export async function runScript(
  sandbox: Sandbox,
  script: string,
  args: readonly string[],
  { env = {}, maxCharacters, signal }: ScriptOptions,
): Promise<ScriptResult> {
  const child = await sandbox.spawn({
    argv: ["/bin/sh", "-c", script, "sh", ...args],
    env: { PATH: searchPathOf(sandbox), LC_ALL: "C", ...env },
    role: "agent",
    signal,
  });
  const [stdout, stderr, { code }] = await Promise.all([
    endOf(child.stdout, maxCharacters),
    endOf(child.stderr, maxCharacters),
    child.exit,
    child.stdin.close().catch(() => {}),
  ]);
  signal.throwIfAborted();
  return { stdout, stderr, code };
}

/** Characters of what a failed program printed, for the log. */
const maxPrinted = 2_000;

/**
 * Reads what a program of Ambit prints besides its answers.
 *
 * @returns waits until the program has ended, and says why, for the log: the error of its reader, its exit code, and the end
 * of what it printed
 */
export function failureOf(child: Pick<Process, "stderr" | "exit">): (error: unknown) => Promise<Error> {
  const printed = endOf(child.stderr, maxPrinted);
  return async (error) => {
    const { code } = await child.exit;
    return new Error(`${messageOf(error)}; exit code ${code}: ${await printed}`, { cause: error });
  };
}

/**
 * Runs the program inside that reads the workspace, and reads what it answers. The process has the sandbox's rights and no
 * more, so nothing leaves that the agent couldn't have read itself. It ends with `read`.
 *
 * @throws OutputsFailed where it ends early, or sends what it shouldn't; an AmbitError of `read`; the signal's reason
 */
export async function askCollector<Result>(
  sandbox: Sandbox,
  wish: object,
  read: (answers: ByteReader) => Promise<Result>,
  signal: AbortSignal,
): Promise<Result> {
  const child = await sandbox.spawn(commandOf(sandbox, signal));
  const failure = failureOf(child);
  const fed = feed(child, await stdinOf("#collector", wish));
  try {
    const result = await read(new ByteReader(child.stdout));
    // It may still send what isn't read any more.
    await child.kill();
    await child.exit;
    return result;
  } catch (error) {
    await child.kill();
    signal.throwIfAborted();
    if (isAmbitError(error)) throw error;
    const cause = await failure(error);
    throw new OutputsFailed(
      "The workspace couldn't be read: the program that reads it needs node in the sandbox, and ended early.",
      { cause },
    );
  } finally {
    await fed;
  }
}

/** Reads a stream as lines and bytes. The sender isn't trusted: a line has a limit. */
export class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>;
  #buffer: Buffer = Buffer.alloc(0);

  constructor(stream: AsyncIterable<Uint8Array>) {
    this.#source = stream[Symbol.asyncIterator]();
  }

  /** The next line without its line break. @throws RangeError for a longer one, and at the stream's end */
  async line(maxBytes: number): Promise<string> {
    const parts = new KeptPieces();
    for (let length = 0; ; ) {
      const end = this.#buffer.indexOf(10);
      const part = end === -1 ? this.#buffer : this.#buffer.subarray(0, end);
      length += part.length;
      if (length > maxBytes) throw new RangeError(`a line is longer than ${maxBytes} bytes`);
      parts.push(part);
      this.#buffer = end === -1 ? Buffer.alloc(0) : this.#buffer.subarray(end + 1);
      if (end !== -1) return parts.take().toString("utf8");
      await this.#more();
    }
  }

  /** The next bytes, in pieces. @throws RangeError at the stream's end */
  async *bytes(count: number): AsyncGenerator<Buffer, void, undefined> {
    for (let left = count; left > 0; ) {
      if (this.#buffer.length === 0) await this.#more();
      const piece = this.#buffer.subarray(0, left);
      this.#buffer = this.#buffer.subarray(piece.length);
      left -= piece.length;
      yield piece;
    }
  }

  /** A file's content, as the program inside sends it. @throws RangeError at the stream's end, or for more bytes */
  async *chunks(maxBytes: number): AsyncGenerator<Buffer, void, undefined> {
    for (let left = maxBytes; ; ) {
      const size = Number(await this.line(16));
      if (!Number.isSafeInteger(size) || size < 0) throw new RangeError("a chunk without a size");
      if (size === 0) return;
      left -= size;
      if (left < 0) throw new RangeError("more bytes than were asked for");
      yield* this.bytes(size);
    }
  }

  /** All that is left, in pieces. */
  async *remainder(): AsyncGenerator<Uint8Array, void, undefined> {
    if (this.#buffer.length > 0) yield this.#buffer;
    yield* { [Symbol.asyncIterator]: () => this.#source };
  }

  async #more(): Promise<void> {
    const { value, done } = await this.#source.next();
    if (done === true) throw new RangeError("it ended early");
    this.#buffer = Buffer.from(value.buffer, value.byteOffset, value.length);
  }
}
