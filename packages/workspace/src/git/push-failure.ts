import { OutputsFailed, type SourceFailureReason } from "@ambit/core";
import { gitFailureOf, lastWords } from "./failure.js";
import type { GitRun } from "./program/git.js";

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
  const fix = fixes[reason] ?? "check the repository's host, and send the patch another way";
  return new OutputsFailed(
    `outputs.git couldn't be pushed: ${detail}. The run's patch is kept (GET /runs/{runId}/patch): ${fix}.`,
    { reason },
  );
}

const fixes: Partial<Record<SourceFailureReason, string>> = {
  authentication: "set outputs.git.credential to one that is valid",
  forbidden: "give outputs.git.credential the right to push to this branch",
  not_found: "give outputs.git.credential the right to see the repository",
  remote_moved: "name another branch, or run again from its new head",
  program_missing:
    "install git, and git-lfs for a repository that uses it, on the host or in the image of its sandboxes",
  unreachable: "check the host; a private address must be in workspace.allowedRanges",
};
