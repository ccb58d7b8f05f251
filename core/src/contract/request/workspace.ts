import { z } from "zod";
import { downloadUrlSchema } from "../values/http.js";
import { secret } from "../values/secret.js";
import { workspaceFileSchema, workspacePathSchema } from "../values/workspace-path.js";
import { credentialSchema } from "./boundary/credentials.js";
import { gitSourceSchema, personSchema } from "./git.js";
import { limits } from "./limits.js";

const sourceFileSchema = z.strictObject({
  path: workspaceFileSchema.meta({
    description: "Relative to the source's folder, which it can't leave; unique.",
  }),
  content: z.string().meta({ description: "The file's content, as `encoding` says." }),
  encoding: z.enum(["utf8", "base64"]).default("utf8").meta({
    description: "`utf8`, the default: `content` is the text · `base64`: of a binary file.",
  }),
  executable: z.boolean().default(false).meta({ description: "Whether it is executable. Default: false." }),
});

const into = workspacePathSchema.optional().meta({
  description: "The folder in the workspace that it goes into. Default: the workspace itself.",
});

const filesSourceSchema = z.strictObject({
  type: z.literal("files").meta({ description: "`files`." }),
  files: z
    .array(sourceFileSchema)
    .min(1)
    .max(limits.sourceFiles)
    .meta({ description: `The files, at most ${limits.sourceFiles.toLocaleString("en")}.` }),
  into,
});

/** The SHA-256 digest of a file. */
const digestSchema = z
  .string()
  .regex(/^[0-9a-f]{64}$/, "must be a SHA-256 digest: 64 hexadecimal digits in lower case");

/** A credential that the runner itself sends with a download. */
const downloadCredentialSchema = z.strictObject({
  value: credentialSchema.shape.value,
  as: z.enum(["bearer", "basic"]).default("bearer").meta({
    description: "How it is sent in `Authorization`: `bearer`, the default, or `basic`.",
  }),
});
export type DownloadCredential = z.infer<typeof downloadCredentialSchema>;

const archiveSourceSchema = z
  .strictObject({
    type: z.literal("archive").meta({ description: "`archive`." }),
    data: z.base64().optional().meta({
      description: "The archive, in base64. Either this or `url`.",
    }),
    url: secret(downloadUrlSchema, "url").optional().meta({
      description:
        "Where the archive is downloaded from, over HTTPS and without a credential before its host. HTTP only for an address in `workspace.allowedRanges` of the server's configuration. Needs `sha256`.",
    }),
    format: z.enum(["tar", "tar.gz", "tar.zst", "zip"]).meta({
      description:
        "`tar`, `tar.gz`, `tar.zst` or `zip`. Links in it are left out, and the receipt names them.",
    }),
    sha256: digestSchema.optional().meta({
      description:
        "The archive's digest; another one fails the run before anything is unpacked. Required with `url`. Default: `data` isn't checked.",
    }),
    credential: downloadCredentialSchema.optional().meta({
      description:
        "What the download needs. The runner sends it to the scheme, host and port of `url` only, never after a redirect to another one. Default: none.",
    }),
    into,
  })
  .superRefine(({ data, url, sha256, credential }, context) => {
    const refuse = (path: string, message: string) =>
      context.addIssue({ code: "custom", path: [path], message });
    if (data === undefined && url === undefined)
      refuse("data", "is missing: give the archive's data or its url");
    if (data !== undefined && url !== undefined)
      refuse("url", "must not be given with data: give one of the two");
    if (url !== undefined && sha256 === undefined)
      refuse("sha256", "is missing: what a URL has may change, so its digest must be known before");
    if (url === undefined && credential !== undefined)
      refuse("credential", "is only for a url: leave it out");
  });
export type ArchiveSource = z.infer<typeof archiveSourceSchema>;

/** What a new workspace begins with. */
export const sourceSchema = z.discriminatedUnion("type", [
  filesSourceSchema,
  gitSourceSchema,
  archiveSourceSchema,
]);
export type Source = z.infer<typeof sourceSchema>;

export const workspaceSchema = z
  .strictObject({
    sources: z
      .array(sourceSchema)
      .max(limits.sources)
      .default([])
      .meta({
        description: `What a new workspace begins with, in this order, at most ${limits.sources}; \`harnessFiles\` come after. A later run of the session keeps its workspace as it is. Default: none.`,
      }),
    gitUser: personSchema.optional().meta({
      description:
        "Who makes the commits that the agent makes with git: written to `.gitconfig` in the home of a new session. Default: git inside has no user, and refuses to commit.",
    }),
  })
  .refine(({ sources, gitUser }) => sources.length > 0 || gitUser !== undefined, {
    path: ["sources"],
    error: "is empty: name a source, or leave workspace out",
  });
