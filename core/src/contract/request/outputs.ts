import { z } from "zod";
import { secret } from "../values/secret.js";
import { workspaceGlobSchema } from "../values/workspace-path.js";
import { credentialSchema } from "./boundary/credentials.js";
import { gitCredentialSchema, gitRefSchema, personSchema } from "./git.js";
import { limits } from "./limits.js";

/** The base URL of an API, such as `https://git.example.com/api/v4`. */
const apiUrlSchema = z
  .string()
  .max(2_048)
  .refine(isApiUrl, { error: "must be a URL that begins with https://, without a credential or a query" });

function isApiUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, search, hash } = new URL(text);
  return protocol === "https:" && `${username}${password}${search}${hash}` === "";
}

/** The hosts on which a pull request can be opened, each with its own API. */
const forgeSchema = z.enum(["github", "gitlab", "gitea", "bitbucket", "bitbucket-data-center", "azure"]);
export type Forge = z.infer<typeof forgeSchema>;

const pullRequestSchema = z.strictObject({
  title: z
    .string()
    .max(255)
    .regex(/^(?=.*\S)[^\r\n\0]*$/, "must be one line of text")
    .meta({ description: "Its title." }),
  body: z.string().max(65_536).default("").meta({
    description: "Its description, in the host's Markdown. Default: empty.",
  }),
  base: gitRefSchema
    .refine((branch) => !branch.startsWith("refs/"), {
      error: "must be a branch's name, without refs/heads/",
    })
    .meta({ description: "The branch that it asks to be merged into." }),
  draft: z.boolean().default(false).meta({ description: "Whether it is a draft. Default: false." }),
  labels: z
    .array(
      z
        .string()
        .max(100)
        .regex(/^(?=.*\S)[^,\r\n\0]*$/, "must be one line without a comma"),
    )
    .max(limits.pullRequestLabels)
    .default([])
    .meta({
      description: `Its labels, at most ${limits.pullRequestLabels}; Bitbucket has none. Default: none.`,
    }),
  host: forgeSchema.optional().meta({
    description:
      "What the repository's host runs: `github` (also GitHub Enterprise), `gitlab`, `gitea` (also Forgejo), `bitbucket` (Cloud), `bitbucket-data-center` or `azure` (Azure DevOps). Default: by the host's name: `github.com`, `gitlab.com`, `gitea.com`, `codeberg.org`, `bitbucket.org`, `dev.azure.com` and those below `visualstudio.com`; required for any other host.",
  }),
  apiUrl: secret(apiUrlSchema, "url").optional().meta({
    description:
      "The API's base URL, over HTTPS. Default: `https://api.github.com`; `https://api.bitbucket.org/2.0`; of another host `/api/v3` (GitHub Enterprise), `/api/v4` (GitLab), `/api/v1` (Gitea), `/rest/api/1.0` (Bitbucket Data Center), or the organization or collection (Azure DevOps).",
  }),
  credential: z
    .strictObject({
      value: credentialSchema.shape.value,
    })
    .optional()
    .meta({
      description:
        "A token for the API, sent as its host takes one, or `user:password`, sent as `Basic`. Default: that of the push.",
    }),
});
export type PullRequestWish = z.infer<typeof pullRequestSchema>;

const gitOutputSchema = z.strictObject({
  push: z.enum(["branch", "none"]).default("branch").meta({
    description:
      "`branch`, the default: the commit is pushed. `none`: it is only kept, as `GET /runs/{runId}/bundle`.",
  }),
  pullRequest: pullRequestSchema.optional().meta({
    description:
      "A pull request (GitLab: merge request) for the branch, opened when it was pushed. One that is open already is taken. Default: none.",
  }),
  branch: gitRefSchema
    .refine((branch) => !branch.startsWith("refs/"), {
      error: "must be a branch's name, without refs/heads/",
    })
    .meta({
      description:
        "The branch of the commit, pushed to the repository of the request's one git source. It must be new, or still be the commit that the workspace began with; nothing is overwritten.",
    }),
  message: z
    .string()
    .min(1)
    .max(65_536)
    .regex(/^[^\0]*$/, "must not contain NUL")
    .meta({
      description: "The commit's message.",
    }),
  author: personSchema.meta({ description: "The commit's author and committer." }),
  credential: gitCredentialSchema.optional().meta({
    description:
      "What the push needs. It is put on requests outside every sandbox, and used only to push to this repository. Default: none.",
  }),
});

/** What leaves the workspace when the run ends or pauses. */
export const outputsSchema = z
  .strictObject({
    include: z
      .array(workspaceGlobSchema)
      .max(limits.outputGlobs)
      .default([])
      .meta({
        description: `Files that leave the workspace, as globs relative to it, such as \`dist/**\` (\`*\`, \`**\`, \`?\`, \`[…]\`, \`{a,b}\`; names that begin with a dot match too); at most ${limits.outputGlobs}.`,
      }),
    patch: z.boolean().default(false).meta({
      description:
        "True: what the run changed, as a patch in git's format, binary files included. New files that a `.gitignore` of the workspace excludes aren't part of it. Default: false.",
    }),
    git: gitOutputSchema.optional().meta({
      description:
        "What the run changed, as a commit on a branch, pushed when the run has completed. Needs `patch`. Default: no commit.",
    }),
    maxFiles: z
      .int()
      .positive()
      .max(limits.outputFiles)
      .default(1_000)
      .meta({
        description: `Files that leave; the receipt names what is left out. Default: 1,000; at most ${limits.outputFiles.toLocaleString("en")}.`,
      }),
    maxBytes: z
      .int()
      .positive()
      .max(limits.outputBytes)
      .default(64 * 1024 * 1024)
      .meta({
        description:
          "Bytes of all of them; the receipt names what is left out. Default: 67,108,864 (64 MiB); at most 1 GiB.",
      }),
  })
  .refine(({ include, patch }) => patch || include.length > 0, {
    error: "must ask for something: set include or patch",
  })
  .refine(({ patch, git }) => patch || git === undefined, {
    path: ["git"],
    error: "needs the patch: set outputs.patch to true",
  })
  .refine(({ git }) => git?.pullRequest === undefined || git.push === "branch", {
    path: ["git", "pullRequest"],
    error: 'needs a branch on the host: leave outputs.git.push out, or set it to "branch"',
  });
export type OutputsRequest = z.infer<typeof outputsSchema>;
