import { z } from "zod";

const size = z.int().nonnegative();
/** A digest in hexadecimal. */
const sha256 = z.string();

/**
 * Why a path isn't among the outputs. `link`: a symbolic link · `hard_link`: a file that has another name outside the
 * workspace · `special`: a device, pipe or socket · `name`: not valid UTF-8, or with a control character or backslash ·
 * `changed`: written to while it was copied · `unreadable` · `too_large`, `too_many`: beyond the limits.
 */
export const omissionReasonSchema = z.enum([
  "link",
  "hard_link",
  "special",
  "name",
  "changed",
  "unreadable",
  "too_large",
  "too_many",
]);
export type OmissionReason = z.infer<typeof omissionReasonSchema>;

export const outputFileSchema = z.strictObject({
  /** The path relative to the workspace. */
  path: z.string(),
  size,
  sha256,
  executable: z.boolean().optional(),
});
export type OutputFile = z.infer<typeof outputFileSchema>;

/** The file in its present state. A deleted file has only its path. */
export const outputChangeSchema = z.discriminatedUnion("change", [
  outputFileSchema.extend({ change: z.literal("added") }),
  outputFileSchema.extend({
    change: z.literal("modified"),
    /** The digest of the content at the run's start. */
    before: sha256,
  }),
  z.strictObject({ change: z.literal("deleted"), path: z.string(), before: sha256 }),
]);
export type OutputChange = z.infer<typeof outputChangeSchema>;

/** What a source put into a new workspace. */
export const sourceReceiptSchema = z.strictObject({
  type: z.enum(["files", "archive", "git"]),
  /** The URL of a git repository, or of a downloaded archive, without its query. */
  url: z.string().optional(),
  /** The commit of a git repository, and its tree. */
  commit: z.string().optional(),
  tree: z.string().optional(),
  /** The repository's submodules, by their paths in it. */
  submodules: z.array(z.strictObject({ path: z.string(), commit: z.string() })).optional(),
  /** The digest of an archive's file. */
  archive: z.strictObject({ bytes: size, sha256 }).optional(),
  files: z.int(),
  bytes: z.int(),
  /** The digest of all paths, modes and contents, in their order. */
  sha256,
  /** The entries that were left out: the first 100. */
  omitted: z
    .array(z.strictObject({ path: z.string(), reason: z.enum(["link", "special", "name"]) }))
    .optional(),
});
export type SourceReceipt = z.infer<typeof sourceReceiptSchema>;

/** The prepared environment that the agent's sandbox began with, if the request has an `environment`. */
export const environmentReceiptSchema = z.strictObject({
  /** The digest of the request's sources, commands and boundary, the sandbox and Ambit's version. */
  key: z.string(),
  /** The digest of its archive. */
  sha256,
  bytes: size,
  /** The number of its files, folders and links. */
  entries: z.int(),
  /** `built`: this run prepared it · `cache`: an earlier run did. */
  from: z.enum(["built", "cache"]),
  /** When its commands had ended (ISO 8601). */
  builtAt: z.string(),
  /** Whether it is kept for later runs. */
  kept: z.boolean(),
});
export type EnvironmentReceipt = z.infer<typeof environmentReceiptSchema>;

/** The commit of the run's changes. */
export const gitReceiptSchema = z.strictObject({
  url: z.string(),
  branch: z.string(),
  commit: z.string(),
  /** The commit's parent, which the workspace began with. */
  base: z.string(),
  /** Whether the branch is on the repository's host now. */
  pushed: z.boolean(),
  /** Whether the server's key signed it. */
  signed: z.boolean(),
  /** The bundle that `GET /runs/{runId}/bundle` returns. */
  bundle: z.strictObject({ size, sha256 }),
  pullRequest: z
    .strictObject({
      url: z.string(),
      number: z.int().positive(),
      /** False if a pull request for this branch was open already. */
      opened: z.boolean(),
    })
    .optional(),
});
export type GitReceipt = z.infer<typeof gitReceiptSchema>;

/** The outputs that left the workspace. `GET /runs/{runId}/files/{path}` and `/patch` return their contents. */
export const outputsReceiptSchema = z.strictObject({
  /** The files that `include` matches. */
  files: z.array(outputFileSchema),
  patch: z
    .strictObject({
      size,
      sha256,
      /** False if the patch lacks changes of paths in `omitted`. */
      complete: z.boolean(),
      changes: z.array(outputChangeSchema),
    })
    .optional(),
  git: gitReceiptSchema.optional(),
  /** The paths that match or changed, but didn't leave: the first 1,000. */
  omitted: z.array(z.strictObject({ path: z.string(), reason: omissionReasonSchema })),
  /** The number of further omitted paths. */
  omittedMore: z.int().positive().optional(),
});
export type OutputsReceipt = z.infer<typeof outputsReceiptSchema>;
