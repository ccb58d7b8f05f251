/** Bytes of what git prints. */
const maxBytes = 64 * 1024 * 1024;

/** So that git fetches nothing: for an object that is missing, it would run the program that the repository configures. */
const withoutFetching = { GIT_ALLOW_PROTOCOL: "none", GIT_NO_LAZY_FETCH: "1" } as const;

export interface GitOptions {
  readonly input?: string;
  /** Default: no limit. */
  readonly timeoutMs?: number;
}

/**
 * Runs a command of the user's git that only reads their repository. Nothing that the repository configures is run.
 * @returns what it prints. @throws ExecaError with `stderr` in English
 */
export async function readGit(
  folder: string,
  args: readonly string[],
  { input = "", timeoutMs }: GitOptions = {},
): Promise<string> {
  const argv = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-C", folder, ...args];
  // Loaded where it is needed: most commands start without it.
  const { execa } = await import("execa");
  const { stdout } = await execa("git", argv, {
    // Its words say whether this is a repository.
    env: { ...withoutFetching, LC_ALL: "C" },
    input,
    maxBuffer: maxBytes,
    timeout: timeoutMs,
    stripFinalNewline: false,
  });
  return stdout;
}

/** The same without the last line break; undefined where git fails. */
export async function askGit(folder: string, ...args: readonly string[]): Promise<string | undefined> {
  const said = await readGit(folder, args).catch(() => undefined);
  return said?.replace(/\n$/, "");
}
