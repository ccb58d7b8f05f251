import { type GitSource, gitRefSchema } from "@ambit/core/contract";
import { sourceFailed } from "../sources/source.js";
import { fixOf, gitFailureOf, lastWords } from "./failure.js";
import { Git, type GitOptions } from "./git.js";

/**
 * The commit that a source has now. It asks the host in any case, so that only those who may read the repository learn it.
 * Undefined where the host names no such branch or tag.
 *
 * @param index of the source in the request.
 * @throws SourceFailed; the signal's reason
 */
export async function headOf(
  index: number,
  source: GitSource,
  options: GitOptions,
): Promise<string | undefined> {
  const git = new Git(options, "head");
  const names = namesOf(source.ref);
  const asked = names.flatMap((name) => [name, `${name}^{}`]);
  const asking = { args: ["ls-remote", "--quiet", "--", source.url, ...asked], reachesHost: true } as const;
  const ended = await git.run([asking]);
  if (ended.isTooMuch)
    throw sourceFailed(index, "checkout_failed", "couldn't be read: its host lists more than was asked for");
  if (ended.code !== 0) {
    const { reason } = gitFailureOf(ended.printed);
    throw sourceFailed(index, reason, `${fixOf(reason)} (${lastWords(ended.printed)})`);
  }
  return source.commit ?? commitIn(ended.stdout.toString("utf8"), names);
}

/** In the order in which git looks for a name (gitrevisions). */
export function namesOf(ref = "HEAD"): readonly string[] {
  return ref === "HEAD" || ref.startsWith("refs/")
    ? [ref]
    : [`refs/${ref}`, `refs/tags/${ref}`, `refs/heads/${ref}`];
}

/** Of an annotated tag, the commit that it points to. Pure. */
function commitIn(listed: string, names: readonly string[]): string | undefined {
  const ids = new Map(
    [...listed.matchAll(/^([0-9a-f]{40}|[0-9a-f]{64})\t(.+)$/gm)].map(([, id, name]) => [name, id]),
  );
  const name = names.find((one) => ids.has(one));
  return name === undefined ? undefined : (ids.get(`${name}^{}`) ?? ids.get(name));
}

/** The branch that a name refers to; undefined for a tag, and for a branch whose name git doesn't accept. Pure. */
export function branchIn(listed: string, names: readonly string[]): string | undefined {
  const symbolic = /^ref: refs\/heads\/(.+)\tHEAD$/m.exec(listed)?.[1];
  const there = new Set([...listed.matchAll(/^[0-9a-f]+\t(.+)$/gm)].map(([, name]) => name));
  const name = names.find((one) => there.has(one));
  const branch = name === "HEAD" ? symbolic : /^refs\/heads\/(.+)$/.exec(name ?? "")?.[1];
  return gitRefSchema.safeParse(branch).data;
}
