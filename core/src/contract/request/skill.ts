import { z } from "zod";
import { workspaceFileSchema } from "../values/workspace-path.js";

const skillFileSchema = z.strictObject({
  path: workspaceFileSchema.meta({
    description: "Relative to the skill's folder, which it can't leave; unique.",
  }),
  content: z.string().meta({ description: "The file's text." }),
  executable: z.boolean().optional().meta({ description: "Asks for the executable bit. Default: false." }),
});

export const skillSchema = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]{0,63}$/, "must be lower-case letters, digits and hyphens")
    .meta({ description: "Lower-case letters, digits and hyphens; unique. The name of its folder." }),
  description: z.string().default("").meta({ description: "When the agent should use it. Default: empty." }),
  body: z.string().meta({ description: "The text of its `SKILL.md`." }),
  files: z.array(skillFileSchema).optional().meta({ description: "Files next to its `SKILL.md`." }),
  disableModelInvocation: z.boolean().optional().meta({
    description: "Only the user may invoke it, not the model. Default: false.",
  }),
  allowExecutableFiles: z.boolean().optional().meta({
    description: "Grants the executable bit to the files that ask for it. Default: false.",
  }),
});
export type Skill = z.infer<typeof skillSchema>;

export const harnessFileSchema = z.strictObject({
  path: workspaceFileSchema.meta({
    description: "Relative to the workspace, which it can't leave: no `..`, NUL or backslash; unique.",
  }),
  content: z.string().meta({ description: "The file's text." }),
});
