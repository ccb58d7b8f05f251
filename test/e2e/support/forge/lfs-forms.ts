/** What a batch of git LFS is answered with: where one content is, and the header to ask for it with. */
export interface LfsAction {
  readonly href: string;
  readonly header?: Readonly<Record<string, string>>;
}

/** What a form is made of. */
export interface LfsRequest {
  /** `https://forge.test:port` */
  readonly origin: string;
  /** With a slash at its beginning, and without `.git`. */
  readonly repository: string;
  readonly operation: "upload" | "download";
  readonly oid: string;
  readonly size: number;
  /** As the batch was sent with it. */
  readonly authorization: string;
  /** Makes a value of `Authorization` that is accepted for contents, and for nothing else. */
  readonly mint: (scheme: "RemoteAuth" | "JWT" | "Basic") => string;
}

type Actions = Readonly<Record<string, LfsAction>>;
type Form = (asked: LfsRequest) => Actions;

const accept = "application/vnd.git-lfs";

/**
 * How hosts answer a batch, from their public sources, and from what their users have reported of it.
 * `signed`: github.com, whose URLs need no header. `githubEnterprise`: at its own host, with a token of its own.
 * `gitlab` and `gitea` repeat the header of the batch; `gitlabToken`: where a GitLab makes a token for git LFS.
 */
export const lfsForms = {
  signed: ({ origin, oid, operation }) => ({
    [operation]: { href: `${origin}/contents/${oid}` },
  }),
  githubEnterprise: ({ origin, oid, operation, mint }) => {
    const header = { Authorization: mint("RemoteAuth") };
    return {
      [operation]: { href: `${origin}/storage/lfs/7/objects/${oid}`, header },
      ...(operation === "upload"
        ? { verify: { href: `${origin}/storage/lfs/7/objects/${oid}/verify`, header } }
        : {}),
    };
  },
  gitlab: (asked) => ofGitlab(asked, asked.authorization),
  gitlabToken: (asked) => ofGitlab(asked, asked.mint("Basic")),
  gitea: (asked) => ofGitea(asked),
  bitbucket: ({ origin, repository, oid, operation, mint }) => ({
    [operation]: {
      href: `${origin}/rest/git-lfs/storage${repository}/${oid}?response-content-disposition=attachment`,
      header: { Authorization: mint("JWT") },
    },
  }),
  /** A path that no host is known to have, with the credential's own header. */
  unknown: ({ origin, repository, oid, operation, authorization }) => ({
    [operation]: {
      href: `${origin}${repository}/contents-of/${oid}`,
      header: { Authorization: authorization },
    },
  }),
  /** A host that the source doesn't list. */
  unlisted: ({ oid, operation }) => ({
    [operation]: { href: `https://unlisted.test/${oid}?signature=secret` },
  }),
  azure: ({ origin, repository, oid, operation }) => ({
    [operation]: { href: `${origin}${repository}/info/lfs/objects/${oid}`, header: { Accept: accept } },
  }),
} as const satisfies Readonly<Record<string, Form>>;
export type LfsForm = keyof typeof lfsForms;

/** Those of hosts that serve what they name. */
export const servingForms = [
  "signed",
  "githubEnterprise",
  "gitlab",
  "gitlabToken",
  "gitea",
  "bitbucket",
  "azure",
] as const satisfies readonly LfsForm[];

function ofGitea({ origin, repository, oid, size, operation, authorization }: LfsRequest): Actions {
  const header = { Authorization: authorization };
  const server = `${origin}${repository}.git/info/lfs`;
  return operation === "download"
    ? { download: { href: `${server}/objects/${oid}`, header } }
    : {
        upload: { href: `${server}/objects/${oid}/${size}`, header },
        verify: { href: `${server}/verify`, header: { ...header, Accept: `${accept}+json` } },
      };
}

function ofGitlab({ origin, repository, oid, size, operation }: LfsRequest, authorization: string): Actions {
  const objects = `${origin}${repository}.git/gitlab-lfs/objects/${oid}`;
  return operation === "download"
    ? { download: { href: objects, header: { Authorization: authorization } } }
    : {
        upload: {
          href: `${objects}/${size}`,
          header: {
            Authorization: authorization,
            "Content-Type": "application/octet-stream",
            "Transfer-Encoding": "chunked",
          },
        },
      };
}

/** The content that a path is of, in any of these forms. */
export function contentAt(
  pathname: string,
): { readonly oid: string; readonly isVerified: boolean } | undefined {
  const [, oid, verify] =
    /^\/(?:contents|storage\/lfs\/7\/objects|rest\/git-lfs\/storage\/.+|.+\/(?:gitlab-lfs|info\/lfs)\/objects)\/([0-9a-f]{64})(\/verify)?(?:\/\d+)?$/.exec(
      pathname,
    ) ?? [];
  return oid === undefined ? undefined : { oid, isVerified: verify !== undefined };
}
