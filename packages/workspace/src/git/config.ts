export interface InsideSettings {
  /** Of the remote `origin`, without a credential. Undefined: it has none. */
  readonly url: string | undefined;
  /** Undefined: none is checked out. */
  readonly branch: string | undefined;
  /** Whether only a part of the commit is there. */
  readonly isSparse: boolean;
  /** Whether contents of git LFS are there instead of their pointers. */
  readonly hasLfs: boolean;
}

/** `.git/config` of a workspace: none of it is a credential, and nothing of the repository's decides it. Pure. */
export function settingsOf({ url, branch, isSparse, hasLfs }: InsideSettings): Buffer {
  const lines = [
    "[core]",
    // Extensions need 1 (gitrepository-layout).
    `repositoryformatversion = ${isSparse ? 1 : 0}`,
    "filemode = true",
    "bare = false",
    "logallrefupdates = true",
    ...(isSparse ? sparseCore : []),
    ...(url === undefined
      ? []
      : [`[remote "origin"]`, `url = ${quoted(url)}`, "fetch = +refs/heads/*:refs/remotes/origin/*"]),
    ...(isSparse ? promisor : []),
    ...(branch === undefined || url === undefined
      ? []
      : [`[branch ${quoted(branch)}]`, "remote = origin", `merge = ${quoted(`refs/heads/${branch}`)}`]),
    ...(isSparse ? ["[extensions]", "partialClone = origin", ...noRoot] : []),
    ...(hasLfs ? lfsFilter : []),
  ];
  return Buffer.from(lines.map((line) => (line.startsWith("[") ? `${line}\n` : `\t${line}\n`)).join(""));
}

const sparseCore = ["sparseCheckout = true", "sparseCheckoutCone = false"];

/** Git takes contents that aren't there for such that `origin` has: nothing else may be missing. */
const promisor = ["promisor = true", "partialclonefilter = blob:none"];

/** The oldest commit that is there isn't compared with nothing: what it has outside is missing. */
const noRoot = ["[log]", "showRoot = false"];

/**
 * Git compares the pointer of a content with the index. Without git LFS it fails, rather than to take contents for changes
 * (`required`). For a content that isn't there and can't be downloaded, its pointer is written.
 */
const lfsFilter = [
  `[filter "lfs"]`,
  "clean = git-lfs clean -- %f",
  "smudge = git-lfs smudge -- %f",
  "process = git-lfs filter-process",
  "required = true",
  "[lfs]",
  "skipdownloaderrors = true",
  `[lfs "transfer"]`,
  "maxretries = 1",
];

/** As a file of git's settings has text (git-config, "Syntax"). */
const quoted = (text: string) => `"${text.replace(/["\\]/g, "\\$&")}"`;
