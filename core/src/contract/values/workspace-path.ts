import { z } from "zod";

/**
 * A path that can only lie inside the workspace: relative, `/`-separated, without `..`, NUL or backslash.
 * Symbolic links are up to the sandbox, which writes without following them.
 */
export const workspacePathSchema = z
  .string()
  .min(1)
  .max(4_096)
  .superRefine((path, context) => {
    const message = problemOfPath(path);
    if (message !== undefined) context.addIssue({ code: "custom", message });
  });

/** The path of a file in the workspace, which doesn't end like a folder's. */
export const workspaceFileSchema = workspacePathSchema.refine((path) => !/(^|\/)\.?$/.test(path), {
  error: "must name a file, not a folder",
});

function problemOfPath(path: string): string | undefined {
  if (path.includes("\0")) return "must not contain NUL";
  if (path.includes("\\")) return "must not contain a backslash: use / between folders";
  if (path.startsWith("/")) return "must be relative to the workspace, not absolute";
  const folders = path.split("/");
  if (folders.includes("..")) return "must not contain '..': it would leave the workspace";
  if (folders.every((folder) => folder === "" || folder === "."))
    return "must name something in the workspace";
  return undefined;
}

/** A glob of paths in the workspace. */
export const workspaceGlobSchema = z
  .string()
  .min(1)
  .max(256)
  .regex(/^[^\0\\]*$/, "must use / between folders, without NUL or backslash")
  .refine((glob) => !glob.startsWith("/") && !glob.split("/").includes(".."), {
    error: "must be relative to the workspace, without '..'",
  });
