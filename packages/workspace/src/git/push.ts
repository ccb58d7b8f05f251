import { OutputsFailed, type SourceFailureReason } from "@ambit/core";
import type { Pushed, PushOptions } from "../outputs/pushing.js";
import { gitFailureOf, lastWords } from "./failure.js";
import { Git, type GitRun } from "./program.js";

/**
 * Makes a commit of the changes on top of the base and pushes it. Git gets contents, never a folder of the agent's. The
 * branch must be new, or still be the base: nothing is overwritten.
 *
 * @throws OutputsFailed; the signal's reason
 */
export async function pushChanges(options: PushOptions): Promise<Pushed> {
  const { output, url, base, sandbox, signal, maxFileBytes } = options;
  const git = new Git(
    { sandbox, signal, maxFileBytes, isPlain: new URL(url).protocol === "http:" },
    "pushed",
  );
  const branch = `refs/heads/${output.branch}`;
  await succeed(git.run(["init", "--quiet", "--template="]));
  await succeed(git.run(["config", "remote.origin.url", url]));
  const head = (await succeed(git.run(["ls-remote", "origin", branch]))).stdout.toString();
  const found = /^([0-9a-f]{40,64})\t/.exec(head)?.[1];
  if (found !== undefined && found !== base) throw moved(`it is at ${found}`);
  const fetching = ["fetch", "--quiet", "--no-tags", "--depth=1", "--refmap="];
  await succeed(git.run([...fetching, "origin", `+${base}:refs/ambit/base`]));
  await succeed(git.run(["fast-import", "--quiet", "--done", "--date-format=raw"], commitOf(options)));
  const { stdout } = await succeed(git.run(["rev-parse", "--verify", "refs/ambit/result^{commit}"]));
  const commit = stdout.toString().trim();
  if (!/^[0-9a-f]{40,64}$/.test(commit)) throw failed("push_failed", "git made no commit");
  // Git checks no names while it imports them, but refuses those that some file system takes for `.git` in an index.
  await succeed(git.run(["read-tree", commit]));
  await succeed(
    git.run([
      ...["push", "--porcelain", "--no-verify", "--no-follow-tags", "--recurse-submodules=no"],
      // It is compared with what the server has: its child replaces the base, or a new branch nothing.
      `--force-with-lease=${branch}:${found ?? ""}`,
      ...["origin", `${commit}:${branch}`],
    ]),
  );
  return { url, branch: output.branch, commit, base };
}

/** The commit as `git fast-import` reads it. */
async function* commitOf({
  output: { author, message },
  base,
  changes,
  spool,
}: PushOptions): AsyncGenerator<Buffer, void, undefined> {
  const person = `${author.name} <${author.email}> ${Math.floor(Date.now() / 1_000)} +0000`;
  const text = Buffer.from(message);
  yield Buffer.from(`commit refs/ambit/result\nauthor ${person}\ncommitter ${person}\ndata ${text.length}\n`);
  yield text;
  yield Buffer.from(`\nfrom ${base}\n`);
  // A file may become a folder: what is gone goes first.
  for (const { path, after } of changes) if (after === undefined) yield Buffer.from(`D ${quoted(path)}\n`);
  for (const { path, after } of changes) {
    if (after === undefined) continue;
    const mode = after.executable ? "100755" : "100644";
    yield Buffer.from(`M ${mode} inline ${quoted(path)}\ndata ${after.size}\n`);
    yield* spool.read(after);
    yield Buffer.from("\n");
  }
  yield Buffer.from("done\n");
}

/** Control characters and backslashes never come here. */
const quoted = (path: string) => `"${path.replaceAll('"', '\\"')}"`;

async function succeed(run: Promise<GitRun>): Promise<GitRun> {
  const ended = await run;
  if (ended.code === 0) return ended;
  const said = `${ended.stdout.toString("utf8")}\n${ended.printed}`;
  if (/stale info|fetch first|non-fast-forward/.test(said)) throw moved("while it was pushed");
  const { reason } = gitFailureOf(said);
  throw failed(reason === "checkout_failed" ? "push_failed" : reason, lastWords(said));
}

function moved(how: string): OutputsFailed {
  return failed("remote_moved", `the branch isn't new, nor the commit that the workspace began with: ${how}`);
}

function failed(reason: SourceFailureReason, detail: string): OutputsFailed {
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
  program_missing: "install git on the host, or in the image of its sandboxes",
  unreachable: "check the host; a private address must be in workspace.allowedRanges",
};
