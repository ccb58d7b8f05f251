import { OutputsFailed, type SourceFailureReason } from "@ambit/core";
import { gitFailureOf, lastWords } from "./failure.js";
import { type GitRun, TooMuchOutput } from "./program.js";

/** What a command printed. @throws OutputsFailed where it failed */
export async function succeed<Ended extends Pick<GitRun, "code" | "printed"> & { stdout?: Buffer }>(
  run: Promise<Ended>,
): Promise<Ended> {
  let ended: Ended;
  try {
    ended = await run;
  } catch (error) {
    if (error instanceof TooMuchOutput) throw failed("too_large", "git printed too much");
    throw error;
  }
  if (ended.code === 0) return ended;
  const said = `${ended.stdout?.toString("utf8") ?? ""}\n${ended.printed}`;
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
