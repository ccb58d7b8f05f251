/** The files and folders that are wanted of a repository. */
export class Sparse {
  /** Without what doesn't count, such as a slash at the end. */
  readonly paths: readonly string[];
  readonly #wanted: ReadonlySet<string>;
  /** Of the wanted paths: a path can lie in as many folders as it has characters. */
  readonly #lengths: ReadonlySet<number>;

  constructor(given: readonly string[]) {
    this.paths = given.map((path) =>
      path
        .split("/")
        .filter((name) => name !== "" && name !== ".")
        .join("/"),
    );
    this.#wanted = new Set(this.paths.map(bytesOf));
    this.#lengths = new Set([...this.#wanted].map(({ length }) => length));
  }

  /** Whether a path, as `TreeEntry` has it, is one of them or in one of them. */
  has(path: string): boolean {
    if (this.#wanted.has(path)) return true;
    for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1))
      if (this.#lengths.has(end) && this.#wanted.has(path.slice(0, end))) return true;
    return false;
  }

  /** The files of attributes that may say something of what is wanted, beyond those in it. */
  get attributesAbove(): readonly string[] {
    const above = new Set([".gitattributes"]);
    for (const path of this.paths)
      for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1))
        above.add(`${path.slice(0, end)}/.gitattributes`);
    return [...above];
  }

  /**
   * As `info/sparse-checkout` has it, for git inside.
   * @param leftOut paths as `TreeEntry` has them: git inside brings none of them back
   */
  patterns(leftOut: readonly string[]): Buffer {
    const wanted = [...this.#wanted].map((path) => `/${patternOf(path)}\n`);
    const not = leftOut.filter((path) => this.has(path)).map((path) => `!/${patternOf(path)}\n`);
    return Buffer.from([...wanted, ...not].join(""), "latin1");
  }
}

/**
 * Whether git reads such a file of the index where it isn't in the tree: without its content it would ask the host, as soon
 * as something is next to it. Pure.
 */
export function isReadFromIndex(path: string): boolean {
  return /(?:^|\/)\.git(?:attributes|ignore)$/.test(path) || path === ".gitmodules" || path === ".lfsconfig";
}

/** One that matches this path and what is in it (gitignore, "Pattern format"). The end of a line can't be in one. */
function patternOf(path: string): string {
  // No pattern for the spaces: it would look for the path's end from each space in it.
  let end = path.length;
  while (path[end - 1] === " ") end -= 1;
  const plain = path
    .slice(0, end)
    .replace(/[*?[\\]/g, "\\$&")
    .replace(/[\r\n]/g, "?");
  return plain + "\\ ".repeat(path.length - end);
}

const bytesOf = (text: string) => Buffer.from(text).toString("latin1");
