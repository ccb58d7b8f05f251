import type { Sandbox } from "@ambit/core/plugin";
import { searchPathOf } from "../program/inside-program.js";
import { endOf, feed } from "../program/streams.js";

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

export interface GitRun {
  readonly stdout: Buffer;
  readonly printed: string;
  readonly code: number | null;
}

export interface GitOptions {
  readonly sandbox: Sandbox;
  readonly signal: AbortSignal;
  /** Whether the repository is reached over plain HTTP. */
  readonly isPlain: boolean;
  /** Bytes of any file that a command may write. */
  readonly maxFileBytes: number;
}

/** Bytes that a command printed beyond what was asked for. */
export class TooMuchOutput extends Error {}

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

  /** @throws TooMuchOutput beyond `maxOutput` bytes; the signal's reason */
  async run(
    args: readonly string[],
    input: AsyncIterable<Uint8Array> | Uint8Array | string = "",
    maxOutput = 65_536,
  ): Promise<GitRun> {
    let stdout: Buffer = Buffer.alloc(0);
    const ended = await this.pass(args, input, async (printed) => {
      stdout = await bounded(printed, maxOutput);
    });
    return { ...ended, stdout };
  }

  /** Passes on what a command prints, while it prints it. @throws what `take` does; the signal's reason */
  async pass(
    args: readonly string[],
    input: AsyncIterable<Uint8Array> | Uint8Array | string,
    take: (stdout: AsyncIterable<Uint8Array>) => Promise<void>,
  ): Promise<Omit<GitRun, "stdout">> {
    const { sandbox, signal, isPlain, maxFileBytes } = this.options;
    signal.throwIfAborted();
    const given = [...settings, ...(isPlain ? ["protocol.http.allow=always"] : [])];
    const child = await sandbox.spawn({
      // The shell sets the one limit that git has no setting for: a server may send any amount.
      argv: [
        "/bin/sh",
        "-c",
        'ulimit -f "$1" && mkdir -p "$2" && shift 2 && exec git "$@"',
        "sh",
        String(Math.ceil(maxFileBytes / 512)),
        this.tree,
        ...given.flatMap((setting) => ["-c", setting]),
        ...args,
      ],
      env: { ...this.#environment(), ...sandbox.placeholders },
      role: "agent",
      signal,
    });
    const printed = endOf(child.stderr, maxPrinted);
    const fed = feed(child, typeof input === "string" ? Buffer.from(input) : input);
    try {
      await take(child.stdout);
      const { code } = await child.exit;
      signal.throwIfAborted();
      return { printed: await printed, code };
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

async function bounded(stream: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of stream) {
    bytes += part.length;
    if (bytes > maxBytes) throw new TooMuchOutput();
    parts.push(part);
  }
  return Buffer.concat(parts, bytes);
}
