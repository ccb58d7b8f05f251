import { workspaceFileSchema } from "@ambit/core/contract";
import { z } from "zod";
import { isGitFolder } from "../inside/git-folder.js";

/** Bytes of one line. */
export const maxLineBytes = 65_536;

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused.
const printableSchema = workspaceFileSchema.regex(/^[^\u0000-\u001f\u007f]*$/);
const pathSchema = printableSchema.refine((path) => !path.split("/").some(isGitFolder));

/** As the program inside sends them; checked, since the sandbox's processes may have changed them. */
export const answerSchema = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("file"),
    path: pathSchema,
    executable: z.boolean(),
    included: z.boolean(),
  }),
  z.strictObject({ type: z.literal("end"), whole: z.boolean() }),
  z.strictObject({ type: z.literal("deleted"), path: pathSchema }),
  z.strictObject({
    type: z.literal("omitted"),
    path: z.string().max(8_192),
    reason: z.enum(["link", "hard_link", "special", "name", "unreadable", "too_large", "too_many"]),
    state: z.string().max(8_192),
  }),
  z.strictObject({ type: z.literal("too_many_entries") }),
  z.strictObject({ type: z.literal("done") }),
]);
export type CheckedAnswer = z.infer<typeof answerSchema>;
