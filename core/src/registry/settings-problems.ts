import type { z } from "zod";
import { knownShapeOf, readableIssues } from "../contract/index.js";

/** A line for each problem that a schema found in given settings: path, reason, and the name that was probably meant. */
export function settingsProblems(error: z.ZodError, schema: z.ZodType, given: unknown): readonly string[] {
  const validated = { value: given, level: knownShapeOf(schema), path: [], keyName: "setting" } as const;
  return readableIssues(error.issues, validated).map(({ path, message }) =>
    path === "" ? message : `${path} ${message}`,
  );
}
