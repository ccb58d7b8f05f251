import { z } from "zod";
import { secret } from "../values/secret.js";
import { workspacePathSchema } from "../values/workspace-path.js";
import { credentialSchema } from "./boundary/credentials.js";
import { limits } from "./limits.js";

/** The URL of a repository, such as `https://github.com/acme/app.git`. */
const gitUrlSchema = z
  .string()
  .max(2_048)
  .superRefine((text, context) => {
    const message = problemOfRepositoryUrl(text);
    if (message !== undefined) context.addIssue({ code: "custom", message });
  });

function problemOfRepositoryUrl(text: string): string | undefined {
  if (!URL.canParse(text)) return "must be a URL, such as https://example.com/acme/app.git";
  const { protocol, username, password, search, hash, pathname } = new URL(text);
  if (protocol !== "https:" && protocol !== "http:")
    return "must begin with https:// (git@host:path is https://host/path)";
  if (username !== "" || password !== "") return "must not hold a credential: put it into `credential`";
  if (search !== "" || hash !== "") return "must not have a query or a fragment";
  if (!/^\/[A-Za-z0-9._~!$&'()+,=:@/-]*[A-Za-z0-9._~-]$/.test(pathname) || pathname.includes("//"))
    return "must have the path of a repository, such as /acme/app.git, without escapes";
  return undefined;
}

/** A branch, a tag, or a whole name below `refs/`, by git's rules (git-check-ref-format). */
export const gitRefSchema = z
  .string()
  .max(256)
  .regex(
    /^(?!-|.*(?:\.\.|\/\/|@\{|\/\.|\.lock(?:\/|$)))[^\s~^:?*[\\\x7f/.](?:[^\s~^:?*[\\\x7f]*[^\s~^:?*[\\\x7f/.])?$/,
    "must be the name of a branch or tag, as git accepts it",
  );

export const gitCredentialSchema = z.strictObject({
  value: credentialSchema.shape.value,
  as: z.enum(["basic", "bearer"]).default("basic").meta({
    description: "How it is sent: `basic`, the default, or `bearer`.",
  }),
  paths: credentialSchema.shape.paths.meta({
    description:
      "Further paths of the same host that it is used with, such as those of private submodules: `/acme/*`, or `/acme/part.git` for all of that repository. Default: the repository's own.",
  }),
});

export const gitSourceSchema = z
  .strictObject({
    type: z.literal("git").meta({ description: "`git`." }),
    url: secret(gitUrlSchema, "url").meta({
      description:
        "The repository's URL, over HTTPS and without a credential in it. HTTP only for an address in `workspace.allowedRanges` of the server's configuration.",
    }),
    ref: gitRefSchema.optional().meta({
      description: "A branch, a tag, or a name below `refs/`. Default: the remote's HEAD.",
    }),
    commit: z
      .string()
      .regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/, "must be a whole commit id, in lower case")
      .optional()
      .meta({ description: "A commit by its whole id, instead of `ref`." }),
    depth: z.int().positive().max(1_000_000).default(1).meta({
      description: "Commits of history that are fetched. Default: 1.",
    }),
    sparse: z
      .array(workspacePathSchema)
      .min(1)
      .max(limits.sparsePaths)
      .optional()
      .meta({
        description: `Files and folders of the repository that are wanted, at most ${limits.sparsePaths}; content of others isn't fetched where the host supports that, except, for git inside, what the fetched commits changed. Default: all.`,
      }),
    submodules: z.boolean().default(false).meta({
      description: "Whether submodules on the same host come too, at any depth. Default: false.",
    }),
    lfs: z
      .union([
        z.boolean(),
        z.strictObject({
          hosts: z.array(credentialSchema.shape.hosts.element).min(1).max(limits.credentialHosts).meta({
            description:
              "Further hosts from which its server has the contents downloaded, each with an optional `:port` (default 443). The credential isn't sent there.",
          }),
        }),
      ])
      .default(false)
      .meta({
        description:
          "Whether contents in git LFS are downloaded: `true` from the same host, or `{hosts}`. Default: false, their pointers.",
      }),
    repository: z.boolean().default(false).meta({
      description:
        "Whether `.git` comes too, with `depth` commits of history, so that git works inside. Default: false, files only.",
    }),
    credential: gitCredentialSchema.optional().meta({
      description:
        "What the repository needs. It is put on requests outside every sandbox, and used only to fetch this repository. Default: none.",
    }),
    into: workspacePathSchema.optional().meta({
      description: "The folder in the workspace that it goes into. Default: the workspace itself.",
    }),
  })
  .refine(({ ref, commit }) => ref === undefined || commit === undefined, {
    path: ["commit"],
    error: "must not be given with a ref: name one of the two",
  });
export type GitSource = z.infer<typeof gitSourceSchema>;

/** A name or address in a commit. */
const nameSchema = z
  .string()
  .min(1)
  .max(256)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused.
  .regex(/^(?!\s)[^<>\u0000-\u001f\u007f-\u009f]+(?<!\s)$/u, "must be one line without < and >");

/** Who makes a commit. */
export const personSchema = z.strictObject({
  name: nameSchema.meta({ description: "The name in a commit." }),
  email: nameSchema.meta({ description: "The address in a commit." }),
});
export type Person = z.infer<typeof personSchema>;
