import { z } from "zod";

/** A glob of paths in the workspace. */
export const workspaceGlobSchema = z
  .string()
  .min(1)
  .max(256)
  .regex(/^[^\0\\]*$/, "must use / between folders, without NUL or backslash")
  .refine((glob) => !glob.startsWith("/") && !glob.split("/").includes(".."), {
    error: "must be relative to the workspace, without '..'",
  });
