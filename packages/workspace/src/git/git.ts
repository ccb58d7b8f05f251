import { randomUUID } from "node:crypto";
import { type Command, endOf, KeptPieces, type Sandbox } from "@ambit/core/plugin";
import { feed, searchPathOf } from "../programs.js";

/** The input of a command. */
export type Input = AsyncIterable<Uint8Array> | Uint8Array | string;

/** One command of git. */
export interface GitCommand {
  /** The arguments after the settings that every command has. */
  readonly args: readonly string[];
  /** One command of a script may read. Default: it reads nothing. */
  readonly input?: Input;
  /** Bytes that it may print. Default 65,536. */
  readonly maxOutput?: number;
  /** Whether it talks to the repository's host: a script without such a command gets no placeholder of a credential. */
  readonly reachesHost?: true;
}

export interface ScriptOptions {
  readonly settings: readonly string[];
  readonly maxFileBytes: number;
  /** The folder of the repository's files, which is made. */
  readonly tree: string;
  /** Between the outputs of two commands, on stdout and, as a line of its own, on stderr. */
  readonly marker: string;
}

/**
 * A script for any POSIX shell that runs commands of git in this order, up to the first one that fails, whose exit code is the
 * script's. It has no text of an argument: it refers to arguments by number. Pure.
 *
 * @throws TypeError where two commands read: the first one may take what is meant for the second
 */
export function argvOf(
  commands: readonly GitCommand[],
  { settings, maxFileBytes, tree, marker }: ScriptOptions,
): Command["argv"] {
  if (commands.filter(({ input }) => input !== undefined).length > 1)
    throw new TypeError("only one command of a script may read");
  // The shell sets the one limit that git has no setting for: a server may send any amount.
  const common = [String(Math.ceil(maxFileBytes / 512)), tree, marker];
  const configuration = settings.flatMap((setting) => ["-c", setting]);
  const all = [...common, ...configuration];
  const lines = commands.map(({ args, input }, at) => {
    const argumentWords = references(all.length, args.length);
    all.push(...args);
    const isLast = at === commands.length - 1;
    const started = `${isLast ? "exec " : ""}git ${references(common.length, configuration.length)} ${argumentWords}`;
    const line = input === undefined ? `${started} </dev/null` : started;
    return isLast ? line : `${line} && printf %s "$3" && echo >&2 && echo "$3" >&2`;
  });
  return ["/bin/sh", "-c", ['ulimit -f "$1" && mkdir -p "$2"', ...lines].join(" &&\n"), "sh", ...all];
}

/** @param before arguments that come first */
function references(before: number, count: number): string {
  return Array.from({ length: count }, (_, at) => `"\${${before + at + 1}}"`).join(" ");
}

/** Bytes that a command printed beyond what it may. */
export class TooMuchOutput extends Error {}

/** What commands print one after the other, with a marker between two of them. */
export class Outputs {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #marker: Buffer;
  #held: Buffer = Buffer.alloc(0);

  /** @param marker secret: a program that chooses what the commands print must not know it */
  constructor(stream: AsyncIterable<Uint8Array>, marker: string) {
    this.#source = stream[Symbol.asyncIterator]();
    this.#marker = Buffer.from(marker);
  }

  /** @returns what the next command prints, and whether another one was started after it @throws TooMuchOutput */
  async next(maxBytes: number): Promise<{ readonly output: Buffer; readonly isFollowed: boolean }> {
    const parts = new KeptPieces();
    let bytes = 0;
    const add = (part: Buffer) => {
      bytes += part.length;
      if (bytes > maxBytes) throw new TooMuchOutput();
      parts.push(part);
    };
    for (;;) {
      const end = this.#held.indexOf(this.#marker);
      if (end !== -1) {
        add(this.#held.subarray(0, end));
        this.#held = this.#held.subarray(end + this.#marker.length);
        return { output: parts.take(), isFollowed: true };
      }
      // The marker may have begun at the end.
      const sure = Math.max(0, this.#held.length - this.#marker.length + 1);
      add(this.#held.subarray(0, sure));
      this.#held = this.#held.subarray(sure);
      const { value, done } = await this.#source.next();
      if (done === true) {
        add(this.#held);
        return { output: parts.take(), isFollowed: false };
      }
      this.#held = Buffer.concat([this.#held, value]);
    }
  }

  /** What the last command prints, while it prints it. */
  async *rest(): AsyncGenerator<Uint8Array, void, undefined> {
    if (this.#held.length > 0) yield this.#held;
    for (;;) {
      const { value, done } = await this.#source.next();
      if (done === true) return;
      yield value;
    }
  }

  /** Reads no more. */
  async close(): Promise<void> {
    await this.#source.return?.();
  }
}

/**
 * Settings of every command: nothing that a repository carries is executed, and no other transport than HTTPS is used.
 * There is no file of settings but git's own in `folder`.
 */
const settings: readonly string[] = [
  "core.hooksPath=/dev/null",
  "core.fsmonitor=false",
  "core.sshCommand=/bin/false",
  "core.gitProxy=",
  "core.alternateRefsCommand=/bin/false",
  "core.attributesFile=/dev/null",
  "core.excludesFile=/dev/null",
  "core.protectHFS=true",
  "core.protectNTFS=true",
  "core.askPass=/bin/false",
  "credential.helper=",
  "diff.external=",
  "fetch.recurseSubmodules=false",
  "fetch.fsckObjects=true",
  // Old commits of well-known repositories have these.
  "fetch.fsck.zeroPaddedFilemode=ignore",
  "fetch.fsck.badTimezone=ignore",
  "fetch.fsck.missingSpaceBeforeDate=ignore",
  "gc.auto=0",
  "maintenance.auto=false",
  "http.followRedirects=initial",
  "protocol.version=2",
  "protocol.allow=never",
  "protocol.https.allow=always",
  "submodule.recurse=false",
  "transfer.bundleURI=false",
];

/** Characters of stderr that are kept. */
const maxPrinted = 8_000;

/** Bytes that a command may print where nothing else is said. */
const defaultOutput = 65_536;

/** How commands ended, of which each but the last that was started succeeded. */
export interface GitRun {
  /** Exit code of the last command that was started. Null where a signal ended it, or it printed too much. */
  readonly code: number | null;
  /** The text that the last command wrote to stderr. */
  readonly printed: string;
  /** The bytes that the last command wrote to stdout. */
  readonly stdout: Buffer;
  /** Whether the last command printed more than it may. */
  readonly isTooMuch: boolean;
  /** The bytes that each command wrote to stdout, if it succeeded. */
  readonly outputs: ReadonlyMap<GitCommand, Buffer>;
}

/** Takes what the last command prints, knowing what those before printed. */
export type TakeLast = (
  stdout: AsyncIterable<Uint8Array>,
  outputs: ReadonlyMap<GitCommand, Buffer>,
) => Promise<void>;

export interface GitOptions {
  readonly sandbox: Sandbox;
  readonly signal: AbortSignal;
  /** Whether the repository is reached over plain HTTP. */
  readonly isPlain: boolean;
  /** Bytes of any file that a command may write. */
  readonly maxFileBytes: number;
  /** Gets how many percent of a fetch have arrived, of commands that print their progress. Default: it isn't read. */
  readonly received?: ((percent: number) => void) | undefined;
}

/** What a fetch says besides errors: nothing, its progress, that of the host (`remote:`), and the references that it has updated. */
const progressLine =
  /^(?:[\r\n]|From | [ *+=t-] |(?:remote: )?(?:Total \d|Found \d+ objects|[A-Z][\w ]+: +\d+%|[A-Z][a-z]+ (?:objects|deltas): +\d))/;
/** Characters at the beginning of a line that show what it is. */
const lineBeginning = 64;

/** Passes on what git writes to stderr besides its progress, and says how much of a fetch it has received. */
async function* withoutProgress(
  stderr: AsyncIterable<Uint8Array>,
  received: (percent: number) => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  let line = "";
  let isPassedOn = false;
  for await (const part of stderr)
    for (const piece of Buffer.from(part)
      .toString("latin1")
      .split(/(?<=[\r\n])/)) {
      const isWhole = /[\r\n]$/.test(piece);
      line = isPassedOn ? piece : line + piece;
      if (isPassedOn || ((isWhole || line.length >= lineBeginning) && !progressLine.test(line))) {
        yield Buffer.from(line, "latin1");
        isPassedOn = !isWhole;
      } else if (isWhole) {
        const percent = /^Receiving objects: +(\d{1,3})%/.exec(line)?.[1];
        if (percent !== undefined) received(Math.min(100, Number(percent)));
      } else line = line.slice(0, lineBeginning);
      if (isWhole) line = "";
    }
  if (!isPassedOn && !progressLine.test(line)) yield Buffer.from(line, "latin1");
}

/** Git in a sandbox of its own. */
export class Git {
  /** The folder of what git fetched. It isn't below the repository's files. */
  readonly folder: string;
  /** The folder of the repository's files. */
  readonly tree: string;

  /** @param name of the repository's folder: one of several in a sandbox. */
  constructor(
    readonly options: GitOptions,
    name: string,
  ) {
    this.folder = `${options.sandbox.workspace}/${name}.git`;
    this.tree = `${options.sandbox.workspace}/${name}`;
  }

  /**
   * Runs commands one after the other in one process, since each process has a jail of its own. It stops at the first that
   * fails.
   *
   * @param take gets what the last command prints, while it prints it, if that one is started; and what those before printed
   * @throws what `take` does; the signal's reason
   */
  async run(commands: readonly GitCommand[], take?: TakeLast): Promise<GitRun> {
    const { sandbox, signal, isPlain, maxFileBytes, received } = this.options;
    signal.throwIfAborted();
    // Nothing that a repository or its host sends can have it in it: no command of git gets it.
    const marker = randomUUID();
    const allSettings = [...settings, ...(isPlain ? ["protocol.http.allow=always"] : [])];
    const child = await sandbox.spawn({
      argv: argvOf(commands, { settings: allSettings, maxFileBytes, tree: this.tree, marker }),
      env: {
        ...this.#environment(),
        ...(commands.some(({ reachesHost }) => reachesHost) ? sandbox.placeholders : {}),
      },
      role: "agent",
      signal,
    });
    const stderr = received === undefined ? child.stderr : withoutProgress(child.stderr, received);
    const printed = endOf(stderr, maxPrinted);
    const fed = feed(child, inputOf(commands));
    try {
      const read = await readAll(new Outputs(child.stdout, marker), commands, take);
      if (read.isTooMuch) await child.kill();
      const { code } = await child.exit;
      signal.throwIfAborted();
      return ranOf(commands, read, code, (await printed).split(`${marker}\n`).at(-1) ?? "");
    } catch (error) {
      await child.kill();
      signal.throwIfAborted();
      throw error;
    } finally {
      await fed;
    }
  }

  #environment(): Readonly<Record<string, string>> {
    return {
      PATH: searchPathOf(this.options.sandbox),
      LC_ALL: "C",
      GIT_DIR: this.folder,
      GIT_WORK_TREE: this.tree,
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_CONFIG_GLOBAL: "/dev/null",
      GIT_ATTR_NOSYSTEM: "1",
      GIT_TERMINAL_PROMPT: "0",
      GIT_NO_REPLACE_OBJECTS: "1",
      GIT_LFS_SKIP_SMUDGE: "0",
    };
  }
}

function inputOf(commands: readonly GitCommand[]): AsyncIterable<Uint8Array> | Uint8Array {
  const input = commands.find((command) => command.input !== undefined)?.input ?? "";
  return typeof input === "string" ? Buffer.from(input) : input;
}

interface Read {
  /** The output of each command that was started. */
  readonly outputs: readonly Buffer[];
  /** Whether the last of these is beyond what it may be. */
  readonly isTooMuch: boolean;
}

async function readAll(printed: Outputs, commands: readonly GitCommand[], take?: TakeLast): Promise<Read> {
  const outputs: Buffer[] = [];
  try {
    for (const { maxOutput = defaultOutput } of take === undefined ? commands : commands.slice(0, -1)) {
      const { output, isFollowed } = await printed.next(maxOutput);
      outputs.push(output);
      if (!isFollowed) return { outputs, isTooMuch: false };
    }
    await take?.(printed.rest(), byCommand(commands, outputs));
    return { outputs: [...outputs, Buffer.alloc(0)], isTooMuch: false };
  } catch (error) {
    await printed.close();
    if (!(error instanceof TooMuchOutput)) throw error;
    return { outputs: [...outputs, Buffer.alloc(0)], isTooMuch: true };
  }
}

function ranOf(
  commands: readonly GitCommand[],
  { outputs, isTooMuch }: Read,
  ended: number | null,
  printed: string,
): GitRun {
  // A sandbox that ends a script early with 0 didn't run all of it.
  const isWhole = !isTooMuch && outputs.length === commands.length;
  const code = isTooMuch || (ended === 0 && !isWhole) ? null : ended;
  const succeeded = byCommand(commands, code === 0 ? outputs : outputs.slice(0, -1));
  return { code, printed, stdout: outputs.at(-1) ?? Buffer.alloc(0), isTooMuch, outputs: succeeded };
}

function byCommand(
  commands: readonly GitCommand[],
  outputs: readonly Buffer[],
): ReadonlyMap<GitCommand, Buffer> {
  const pairs = commands.flatMap((command, at): [GitCommand, Buffer][] => {
    const output = outputs[at];
    return output === undefined ? [] : [[command, output]];
  });
  return new Map(pairs);
}

/** A commit, and the tree of its files. */
export interface CommitIds {
  readonly commit: string;
  readonly tree: string;
}

/** Asks for the ids of the commit that a reference has. */
export function idsCommand(ref: string): GitCommand {
  return { args: ["rev-parse", `${ref}^{commit}`, `${ref}^{tree}`] };
}

/** Undefined where git printed something else. Pure. */
export function idsIn(output: Buffer | undefined): CommitIds | undefined {
  const printed = output?.toString("latin1") ?? "";
  const [, commit, tree] = /^([0-9a-f]{40}|[0-9a-f]{64})\n([0-9a-f]{40}|[0-9a-f]{64})\n$/.exec(printed) ?? [];
  return commit === undefined || tree === undefined ? undefined : { commit, tree };
}
