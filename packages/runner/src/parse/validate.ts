import {
  harnessFileSchema,
  isJsonObject,
  maxIssues,
  mcpServerSchema,
  messageSchema,
  type RunRequest,
  runRequestSchema,
  skillSchema,
  toolSpecSchema,
} from "@ambit/core/contract";
import type { z } from "zod";

export type ValidatedRequest =
  | { readonly success: true; readonly data: RunRequest }
  | { readonly success: false; readonly issues: readonly z.core.$ZodIssue[] };

/**
 * The same as `runRequestSchema.safeParse`, but long lists are validated entry by entry, and no further once there are
 * enough issues: zod collects all of them, and a body has room for millions.
 */
export function validateRequest(candidate: unknown): ValidatedRequest {
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
  const parsed = runRequestSchema.safeParse(frame);
  if (parsed.success && issues.length === 0) return { success: true, data: { ...parsed.data, ...lists } };
  return { success: false, issues: [...issues, ...(parsed.error?.issues ?? [])] };
}

function validEntries<Entry extends z.ZodType>(
  list: readonly unknown[],
  schema: Entry,
  key: string,
  issues: z.core.$ZodIssue[],
): z.output<Entry>[] {
  const valid: z.output<Entry>[] = [];
  for (const [index, entry] of list.entries()) {
    const parsed = schema.safeParse(entry);
    if (parsed.success) valid.push(parsed.data);
    else {
      for (const issue of parsed.error.issues) issues.push({ ...issue, path: [key, index, ...issue.path] });
      if (issues.length > maxIssues) break;
    }
  }
  return valid;
}
