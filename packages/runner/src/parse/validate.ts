import {
  isJsonObject,
  type KnownShape,
  knownShapeAt,
  maxIssues,
  type RunRequest,
  type RunRequestSchema,
} from "@ambit/core/contract";
import type { z } from "zod";
import { type Validation, validate } from "./windows.js";

/**
 * The same as `schema.safeParse`, but long lists are validated entry by entry, and no further once there are
 * enough issues: zod collects all of them, and a body has room for a hundred thousand.
 */
export function validateRequest(
  candidate: unknown,
  schema: RunRequestSchema,
  level: KnownShape | undefined,
): Validation<RunRequest> {
  const issues: z.core.$ZodIssue[] = [];
  const frame: unknown = isJsonObject(candidate) ? { ...candidate } : candidate;
  const take = <Entry extends z.ZodType>(key: keyof RunRequest, entry: Entry): z.output<Entry>[] => {
    const list = isJsonObject(frame) ? frame[key] : undefined;
    if (!isJsonObject(frame) || !Array.isArray(list)) return [];
    Object.assign(frame, { [key]: [] });
    return validEntries(list, entry, level, key, issues);
  };
  const { shape } = schema;
  const lists = {
    messages: take("messages", shape.messages.unwrap().element),
    customTools: take("customTools", shape.customTools.unwrap().element),
    mcpServers: take("mcpServers", shape.mcpServers.unwrap().element),
    skills: take("skills", shape.skills.unwrap().element),
    harnessFiles: take("harnessFiles", shape.harnessFiles.unwrap().element),
  };
  const parsed = validate(schema, frame, level);
  if (!parsed.success) return { success: false, issues: [...issues, ...parsed.issues] };
  return issues.length > 0
    ? { success: false, issues }
    : { success: true, data: { ...parsed.data, ...lists } };
}

function validEntries<Entry extends z.ZodType>(
  list: readonly unknown[],
  schema: Entry,
  requestLevel: KnownShape | undefined,
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
