import { z } from "zod";
import { workspaceFileSchema, workspacePathSchema } from "../values/workspace-path.js";
import { gitSourceSchema } from "./git.js";
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

const archiveSourceSchema = z.strictObject({
  type: z.literal("archive").meta({ description: "`archive`." }),
  data: z.base64().meta({ description: "The archive, in base64." }),
  format: z.enum(["tar", "tar.gz", "tar.zst", "zip"]).meta({
    description: "`tar`, `tar.gz`, `tar.zst` or `zip`. Links in it are left out, and the receipt names them.",
  }),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/, "must be a SHA-256 digest: 64 hexadecimal digits in lower case")
    .optional()
    .meta({
      description: "The archive's digest; another one fails the run. Default: it isn't checked.",
    }),
  into,
});

/** What a new workspace begins with. */
export const sourceSchema = z.discriminatedUnion("type", [
  filesSourceSchema,
  archiveSourceSchema,
  gitSourceSchema,
]);
export type Source = z.infer<typeof sourceSchema>;

export const workspaceSchema = z.strictObject({
  sources: z
    .array(sourceSchema)
    .min(1)
    .max(limits.sources)
    .meta({
      description: `What a new workspace begins with, in this order, at most ${limits.sources}; \`harnessFiles\` come after. A later run of the session keeps its workspace as it is.`,
    }),
});
