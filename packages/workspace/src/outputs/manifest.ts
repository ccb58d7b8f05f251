import { outputFileSchema } from "@ambit/core/contract";
import { z } from "zod";

/** What is kept of a run's outputs, as the file `manifest` beside them. */
export const manifestSchema = z.strictObject({
  version: z.literal(1),
  /** Milliseconds since 1970. */
  createdAt: z.int(),
  files: z.array(
    outputFileSchema.extend({
      /** Of the blob with its content. */
      name: z.string(),
    }),
  ),
  patch: z.strictObject({ size: z.int(), sha256: z.string() }).optional(),
});
export type OutputsManifest = z.infer<typeof manifestSchema>;

/** Names of an owner's blobs. */
export const blobNames = {
  manifest: "manifest",
  patch: "patch",
  bundle: "bundle",
  file: (index: number) => `file-${index}`,
} as const;
