import { OutputsFailed, type SourceFailureReason } from "@ambit/core";
import type { GitRun } from "./git.js";

/** How a command of git failed. */
interface GitFailure {
  readonly reason: SourceFailureReason;
  /** What the user changes. */
  readonly fix: string;
}

const fixes: Partial<Record<SourceFailureReason, string>> = {
  authentication: "needs a credential, or refused the one it got: set `credential` to one that is valid",
  forbidden:
    "refused the request: give the credential the right to it, and check its `paths`; hosts from which git LFS downloads must be in `lfs.hosts`",
  not_found: "isn't there, or the credential may not see it: check `url` and `credential`",
  ref_missing: "doesn't have this commit, branch or tag: check `ref` and `commit`",
  unreachable:
    "couldn't be reached: check the host's name and certificate; a private address must be in workspace.allowedRanges of the server's configuration",
  program_missing:
    "needs a program that isn't in the sandbox: install git, and git-lfs for `lfs`, on the host or in the image of its sandboxes",
  too_large:
    "is too large: lower depth, set sparse, or raise workspace.maxSourceFiles and workspace.maxSourceMiB of the server's configuration",
  timed_out: "took too long: ask for less, or raise workspace.sourcesTimeoutMs of the server's configuration",
  checkout_failed: "couldn't be checked out",
};

/** Signs of each reason. The order counts, since a later sign may be the consequence of an earlier one. */
const signs: readonly (readonly [RegExp, SourceFailureReason])[] = [
  [/git: not found|git: No such file|git-lfs: not found|'lfs' is not a git command/i, "program_missing"],
  [/File too large|File size limit|signal 25\b|No space left|Disk quota exceeded/i, "too_large"],
  [/could not read (?:Username|Password)|Authentication (?:failed|required)|\b401\b/i, "authentication"],
  [
    /HTTP code 4\d\d from proxy|Could not resolve|Failed to connect|certificate|\b502\b|timed out/i,
    "unreachable",
  ],
  [/\b403\b|Ambit's boundary refused|Refused by Ambit's boundary/i, "forbidden"],
  [/couldn't find remote ref|not our ref|unadvertised object|no such remote ref|bad object/i, "ref_missing"],
  [
    /repository '[^']*' not found|Repository or object not found|\b404\b|does not appear to be a git repository/i,
    "not_found",
  ],
];

/** What git's last words say. Pure. @param printed what it wrote to stderr, in English */
export function gitFailureOf(printed: string): GitFailure {
  const reason = signs.find(([sign]) => sign.test(printed))?.[1] ?? "checkout_failed";
  return { reason, fix: fixOf(reason) };
}

export function fixOf(reason: SourceFailureReason): string {
  return fixes[reason] ?? "failed";
}

/** Lines beside the one with the reason: of git, and of git LFS, which prints its reason first. */
const sayNothing =
  /^(?:hint:|Downloading .* \(.*B\)$|Errors logged to|Use `git lfs logs last`|error: external filter|fatal: .*smudge filter lfs failed|error: failed to push some refs)/;

/** What git LFS says before the name of the file and its reason. */
const lfsObjectPrefix = /^Error downloading object: .*?: Smudge error: Error downloading /;
/** A URL that holds its own credential, as hosts give git LFS. */
const signedQuery = /(https?:\/\/[^\s?"']+)\?[^\s"']*/g;

/** The last lines that say what went wrong, on one line, without anything that a terminal obeys. Pure. */
export function lastWords(printed: string): string {
  const lines = printed
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed.
    .replace(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029]+/g, " ")
    .split("\n")
    .map((line) => line.trim().replace(lfsObjectPrefix, "").replace(signedQuery, "$1?…"))
    .filter((line) => line !== "" && !sayNothing.test(line));
  return lines.slice(-3).join("; ").slice(-400);
}

/** @throws OutputsFailed for commands that failed */
export function requireSuccess({ code, stdout, printed, isTooMuch }: GitRun): void {
  if (isTooMuch) throw failed("too_large", "git printed too much");
  if (code === 0) return;
  const said = `${stdout.toString("utf8")}\n${printed}`;
  if (/stale info|fetch first|non-fast-forward/.test(said)) throw moved("while it was pushed");
  const { reason } = gitFailureOf(said);
  throw failed(reason === "checkout_failed" ? "push_failed" : reason, lastWords(said));
}

export function moved(how: string): OutputsFailed {
  return failed("remote_moved", `the branch isn't new, nor the commit that the workspace began with: ${how}`);
}

export function failed(reason: SourceFailureReason, detail: string): OutputsFailed {
  const fix = pushFixes[reason] ?? "check the repository's host, and send the patch another way";
  return new OutputsFailed(
    `outputs.git couldn't be pushed: ${detail}. The run's patch is kept (GET /runs/{runId}/patch): ${fix}.`,
    { reason },
  );
}

const pushFixes: Partial<Record<SourceFailureReason, string>> = {
  authentication: "set outputs.git.credential to one that is valid",
  forbidden: "give outputs.git.credential the right to push to this branch",
  not_found: "give outputs.git.credential the right to see the repository",
  remote_moved: "name another branch, or run again from its new head",
  program_missing:
    "install git, and git-lfs for a repository that uses it, on the host or in the image of its sandboxes",
  unreachable: "check the host; a private address must be in workspace.allowedRanges",
};
