import { createHash } from "node:crypto";
import type { PushOptions } from "../outputs/pushing.js";
import { Git, type GitRun, type TakeLast } from "./program/git.js";
import type { GitCommand } from "./program/script.js";
import { moved, requireSuccess } from "./push-failure.js";

/** The repository where a commit is made. The base is fetched by the process of the first commands that are run in it. */
export class PushedRepository {
  readonly branch: string;
  readonly #git: Git;
  readonly #base: string;
  readonly #heads: GitCommand;
  #opening: readonly GitCommand[];
  #found: string | undefined;

  constructor({ output, url, base, sandbox, signal, maxFileBytes }: PushOptions) {
    const isPlain = new URL(url).protocol === "http:";
    this.#git = new Git({ sandbox, signal, maxFileBytes, isPlain }, "pushed");
    this.#base = base;
    this.branch = `refs/heads/${output.branch}`;
    this.#heads = { args: ["ls-remote", "origin", this.branch], reachesHost: true };
    const fetching = ["fetch", "--quiet", "--no-tags", "--depth=1", "--refmap="];
    this.#opening = [
      { args: ["init", "--quiet", "--template="] },
      { args: ["config", "remote.origin.url", url] },
      ...(output.push === "branch" ? [this.#heads] : []),
      { args: [...fetching, "origin", `+${base}:refs/ambit/base`], reachesHost: true },
    ];
  }

  /** The commit that the host's branch has; undefined for a new branch. */
  get found(): string | undefined {
    return this.#found;
  }

  /**
   * Runs commands in one process.
   * @param take as for `Git.run`
   * @throws OutputsFailed where one fails, or the branch is neither new nor the base; the signal's reason
   */
  async run(commands: readonly GitCommand[], take?: TakeLast): Promise<GitRun> {
    const opening = this.#opening;
    this.#opening = [];
    const ended = await this.#git.run([...opening, ...commands], take);
    const head = ended.outputs.get(this.#heads)?.toString();
    if (head !== undefined) this.#found = /^([0-9a-f]{40,64})\t/.exec(head)?.[1];
    // Before what failed because of it.
    if (this.#found !== undefined && this.#found !== this.#base) throw moved(`it is at ${this.#found}`);
    requireSuccess(ended);
    return ended;
  }
}

/** The id that git gives to a commit's object. Pure. @param format an id of the same repository */
export function commitIdOf(object: Buffer, format: string): string {
  const hash = createHash(format.length === 40 ? "sha1" : "sha256");
  return hash.update(`commit ${object.length}\0`).update(object).digest("hex");
}
