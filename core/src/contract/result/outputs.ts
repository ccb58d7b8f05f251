import { z } from "zod";

const size = z.int().nonnegative();
/** In hex. */
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
  /** Relative to the workspace. */
  path: z.string(),
  size,
  sha256,
  executable: z.boolean().optional(),
});
export type OutputFile = z.infer<typeof outputFileSchema>;

/** The file as it is now; of a deleted one, only its path. */
export const outputChangeSchema = z.discriminatedUnion("change", [
  outputFileSchema.extend({ change: z.literal("added") }),
  outputFileSchema.extend({
    change: z.literal("modified"),
    /** Digest of the content at the run's start. */
    before: sha256,
  }),
  z.strictObject({ change: z.literal("deleted"), path: z.string(), before: sha256 }),
]);
export type OutputChange = z.infer<typeof outputChangeSchema>;

/** What a source put into a new workspace. */
export const sourceReceiptSchema = z.strictObject({
  type: z.enum(["files", "archive", "git"]),
  /** Where it came from, without a query: of a git repository, or of an archive that was downloaded. */
  url: z.string().optional(),
  /** Of a git repository: the commit and its tree. */
  commit: z.string().optional(),
  tree: z.string().optional(),
  /** Its submodules, by their paths in it. */
  submodules: z.array(z.strictObject({ path: z.string(), commit: z.string() })).optional(),
  /** Of an archive: the file itself. */
  archive: z.strictObject({ bytes: size, sha256 }).optional(),
  files: z.int(),
  bytes: z.int(),
  /** Of all paths, modes and contents, in their order. */
  sha256,
  /** Entries that were left out: the first 100. */
  omitted: z
    .array(z.strictObject({ path: z.string(), reason: z.enum(["link", "special", "name"]) }))
    .optional(),
});
export type SourceReceipt = z.infer<typeof sourceReceiptSchema>;

/** What the agent's sandbox began with, where the request has an `environment`. */
export const environmentReceiptSchema = z.strictObject({
  /** Of the request's sources, commands and boundary, the sandbox and Ambit's version. */
  key: z.string(),
  /** Of its archive. */
  sha256,
  bytes: size,
  /** Files, folders and links. */
  entries: z.int(),
  /** `built`: by this run · `cache`: by an earlier one. */
  from: z.enum(["built", "cache"]),
  /** When its commands had ended (ISO 8601). */
  builtAt: z.string(),
  /** Whether it is kept for later runs. */
  kept: z.boolean(),
});
export type EnvironmentReceipt = z.infer<typeof environmentReceiptSchema>;

/** The commit of what changed. */
export const gitReceiptSchema = z.strictObject({
  url: z.string(),
  branch: z.string(),
  commit: z.string(),
  /** Its parent: what the workspace began with. */
  base: z.string(),
  /** Whether the branch is on the repository's host now. */
  pushed: z.boolean(),
  /** Whether the server's key signed it. */
  signed: z.boolean(),
  /** As `GET /runs/{runId}/bundle` has it. */
  bundle: z.strictObject({ size, sha256 }),
  pullRequest: z
    .strictObject({
      url: z.string(),
      number: z.int().positive(),
      /** False: one for this branch was open already. */
      opened: z.boolean(),
    })
    .optional(),
});
export type GitReceipt = z.infer<typeof gitReceiptSchema>;

/** What left the workspace: `GET /runs/{runId}/files/{path}` and `/patch` have the contents. */
export const outputsReceiptSchema = z.strictObject({
  /** Those that `include` matches. */
  files: z.array(outputFileSchema),
  patch: z
    .strictObject({
      size,
      sha256,
      /** False: changes of paths in `omitted` are missing in it. */
      complete: z.boolean(),
      changes: z.array(outputChangeSchema),
    })
    .optional(),
  git: gitReceiptSchema.optional(),
  /** Paths that match or changed, and didn't leave: the first 1,000. */
  omitted: z.array(z.strictObject({ path: z.string(), reason: omissionReasonSchema })),
  /** The number of further ones. */
  omittedMore: z.int().positive().optional(),
});
export type OutputsReceipt = z.infer<typeof outputsReceiptSchema>;
