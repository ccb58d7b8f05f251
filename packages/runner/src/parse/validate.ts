import {
  harnessFileSchema,
  isJsonObject,
  knownShapeAt,
  knownShapeOf,
  maxIssues,
  mcpServerSchema,
  messageSchema,
  type RunRequest,
  runRequestSchema,
  skillSchema,
  toolSpecSchema,
} from "@ambit/core/contract";
import type { z } from "zod";
import { type Validation, validate } from "./windows.js";

const requestLevel = knownShapeOf(runRequestSchema);

/**
 * The same as `runRequestSchema.safeParse`, but long lists are validated entry by entry, and no further once there are
 * enough issues: zod collects all of them, and a body has room for a hundred thousand.
 */
export function validateRequest(candidate: unknown): Validation<RunRequest> {
  const issues: z.core.$ZodIssue[] = [];
  const frame: unknown = isJsonObject(candidate) ? { ...candidate } : candidate;
  const take = <Entry extends z.ZodType>(key: keyof RunRequest, schema: Entry): z.output<Entry>[] => {
    const list = isJsonObject(frame) ? frame[key] : undefined;
    if (!isJsonObject(frame) || !Array.isArray(list)) return [];
    Object.assign(frame, { [key]: [] });
    return validEntries(list, schema, key, issues);
  };
  const lists = {
    messages: take("messages", messageSchema),
    customTools: take("customTools", toolSpecSchema),
    mcpServers: take("mcpServers", mcpServerSchema),
    skills: take("skills", skillSchema),
    harnessFiles: take("harnessFiles", harnessFileSchema),
  };
  const parsed = validate(runRequestSchema, frame, requestLevel);
  if (!parsed.success) return { success: false, issues: [...issues, ...parsed.issues] };
  return issues.length > 0
    ? { success: false, issues }
    : { success: true, data: { ...parsed.data, ...lists } };
}

function validEntries<Entry extends z.ZodType>(
  list: readonly unknown[],
  schema: Entry,
  key: string,
  issues: z.core.$ZodIssue[],
): z.output<Entry>[] {
  const valid: z.output<Entry>[] = [];
  const level = knownShapeAt(requestLevel, [key, 0]);
  for (const [index, entry] of list.entries()) {
    const parsed = validate(schema, entry, level);
    if (parsed.success) valid.push(parsed.data);
    else {
      for (const issue of parsed.issues) issues.push({ ...issue, path: [key, index, ...issue.path] });
      if (issues.length > maxIssues) break;
    }
  }
  return valid;
}
