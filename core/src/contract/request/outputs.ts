import { z } from "zod";
import { workspaceGlobSchema } from "../values/workspace-glob.js";
import { gitOutputSchema } from "./git-output.js";
import { limits } from "./limits.js";

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
