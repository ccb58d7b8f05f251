import type { Command } from "@ambit/core/plugin";

/** What a command reads. */
export type Input = AsyncIterable<Uint8Array> | Uint8Array | string;

/** One command of git. */
export interface GitCommand {
  /** After the settings that every command has. */
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
  /** Of the repository's files: it is made. */
  readonly tree: string;
  /** Between the outputs of two commands, on stdout and on stderr. */
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
  const given = settings.flatMap((setting) => ["-c", setting]);
  const all = [...common, ...given];
  const lines = commands.map(({ args, input }, at) => {
    const own = references(all.length, args.length);
    all.push(...args);
    const isLast = at === commands.length - 1;
    const started = `${isLast ? "exec " : ""}git ${references(common.length, given.length)} ${own}`;
    const line = input === undefined ? `${started} </dev/null` : started;
    return isLast ? line : `${line} && printf %s "$3" && printf %s "$3" >&2`;
  });
  return ["/bin/sh", "-c", ['ulimit -f "$1" && mkdir -p "$2"', ...lines].join(" &&\n"), "sh", ...all];
}

/** @param before arguments that come first */
function references(before: number, count: number): string {
  return Array.from({ length: count }, (_, at) => `"\${${before + at + 1}}"`).join(" ");
}
