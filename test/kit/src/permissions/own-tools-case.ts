import type { Harness } from "@ambit/core/plugin";

/** A call of one of the agent's own tools. */
export interface OwnToolCall {
  /** The tool's name, as the agent offers it to its model and uses it in its questions. */
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/** A harness whose agent must obey permissions for its own tools, and how to test that. */
export interface OwnToolsCase {
  /** The harness under test, with its real agent. */
  harness(): Harness;
  /**
   * The control: the same agent without the settings that make it ask. Omitted for a harness that doesn't support
   * permission requests, which has no such settings.
   */
  unguarded?(): Harness;
  /** The request's fields for a model at this URL: `modelConnection`, and `model` if the agent needs one. */
  request(model: { readonly url: string; readonly key: string }): object;
  /** The name of its shell in its questions. */
  readonly shell: string;
  /** Further calls, with at least one of each of its own tools. The workspace has a file `x.txt` with the text `a`. */
  readonly calls: readonly OwnToolCall[];
  /** Calls of tools that are offered only if reads are allowed, such as the agent's notes. Default: none. */
  readonly notes?: readonly OwnToolCall[];
  /** Own tools that are offered but not among `calls`, each with the reason: "it asks the user itself". */
  readonly untried?: Readonly<Record<string, string>>;
  /** Files that would let the agent act unasked, by their paths in the workspace and in the home. */
  readonly planted?: {
    readonly workspace?: Readonly<Record<string, string>>;
    readonly home?: Readonly<Record<string, string>>;
  };
}

/** The first are commands that agents consider safe and would run unasked; the last ones create a file `made`. */
export const shellCommands: readonly string[] = [
  "ls -la",
  "pwd",
  "echo hi",
  "cat x.txt",
  "git status",
  "git diff",
  "find . -name x.txt",
  "ls && pwd",
  "bash -c 'ls'",
  "echo made > made",
  "touch made",
];
