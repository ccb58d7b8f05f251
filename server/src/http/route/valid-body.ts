import { RequestInvalid } from "@ambit/core";
import { knownShapeOf, readableIssues } from "@ambit/core/contract";
import type { z } from "zod";

/** A small body by its schema. @throws RequestInvalid with every field that is wrong, and its fix */
export function validBody<Body>(schema: z.ZodType<Body>, body: unknown): Body {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const level = knownShapeOf(schema);
  throw new RequestInvalid(readableIssues(parsed.error.issues, { value: body, level, path: [] }));
}
