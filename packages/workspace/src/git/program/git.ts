import { randomUUID } from "node:crypto";
import type { Sandbox } from "@ambit/core/plugin";
import { searchPathOf } from "../../program/inside-program.js";
import { endOf, feed } from "../../program/streams.js";
import { Outputs, TooMuchOutput } from "./outputs.js";
import { argvOf, type GitCommand } from "./script.js";

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
  /** Of the last one that was started. Null where a signal ended it, or it printed too much. */
  readonly code: number | null;
  /** What that one wrote to stderr. */
  readonly printed: string;
  /** What that one wrote to stdout. */
  readonly stdout: Buffer;
  /** Whether that one printed more than it may. */
  readonly isTooMuch: boolean;
  /** Of each command that succeeded, what it wrote to stdout. */
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
}

/** Git in a sandbox of its own. */
export class Git {
  /** Of what it fetched; not below the repository's files. */
  readonly folder: string;
  /** Of the repository's files. */
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
    const { sandbox, signal, isPlain, maxFileBytes } = this.options;
    signal.throwIfAborted();
    // Nothing that a repository or its host sends can have it in it: no command of git gets it.
    const marker = randomUUID();
    const given = [...settings, ...(isPlain ? ["protocol.http.allow=always"] : [])];
    const child = await sandbox.spawn({
      argv: argvOf(commands, { settings: given, maxFileBytes, tree: this.tree, marker }),
      env: {
        ...this.#environment(),
        ...(commands.some(({ reachesHost }) => reachesHost) ? sandbox.placeholders : {}),
      },
      role: "agent",
      signal,
    });
    const printed = endOf(child.stderr, maxPrinted);
    const fed = feed(child, inputOf(commands));
    try {
      const read = await readAll(new Outputs(child.stdout, marker), commands, take);
      if (read.isTooMuch) await child.kill();
      const { code } = await child.exit;
      signal.throwIfAborted();
      return ranOf(commands, read, code, (await printed).split(marker).at(-1) ?? "");
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
  /** Of each command that was started. */
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
