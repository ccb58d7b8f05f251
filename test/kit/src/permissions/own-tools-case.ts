import type { Harness } from "@ambit/core/plugin";

/** A call of one of the agent's own tools. */
export interface OwnToolCall {
  /** The tool's name as the agent offers it to its model, and as its question gives it. */
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/** A harness whose agent is held to permissions for its own tools, and how that is tried. */
export interface OwnToolsCase {
  /** The harness under test, with its real agent. */
  harness(): Harness;
  /**
   * The control: the same agent without what makes it ask. Left out for a harness that doesn't support permission
   * requests, which has nothing that could be taken out.
   */
  unguarded?(): Harness;
  /** The request's fields that lead the agent to a model at this URL: `modelConnection`, and `model` where it needs one. */
  request(model: { readonly url: string; readonly key: string }): object;
  /** The name of its shell, as its question gives it. */
  readonly shell: string;
  /** Further calls, with one of each of its own tools at least. The workspace has a file `x.txt` with the text `a`. */
  readonly calls: readonly OwnToolCall[];
  /** Calls of tools that are offered only where reads are allowed, such as the agent's notes to itself. Default: none. */
  readonly notes?: readonly OwnToolCall[];
  /** Own tools that are offered and not among `calls`, each with the reason: "it asks the user itself". */
  readonly untried?: Readonly<Record<string, string>>;
  /** Files that would let the agent act unasked, by their paths in the workspace and in the home. */
  readonly planted?: {
    readonly workspace?: Readonly<Record<string, string>>;
    readonly home?: Readonly<Record<string, string>>;
  };
}

/** The first are what agents take for safe and would run unasked; the last ones leave a file `made`. */
export const shellCommands: readonly string[] = [
  ...["ls -la", "pwd", "echo hi", "cat x.txt", "git status", "git diff", "find . -name x.txt"],
  ...["ls && pwd", "bash -c 'ls'", "echo made > made", "touch made"],
];
