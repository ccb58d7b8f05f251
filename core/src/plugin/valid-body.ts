import type { z } from "zod";
import { knownShapeOf, readableIssues, type Validated } from "../contract/index.js";
import { RequestInvalid } from "../errors.js";

/**
 * Parses a body, or a part of one, with its schema.
 * @param path leads to the part in its body. Default: the whole body.
 * @throws RequestInvalid with every wrong field and its fix
 */
export function validBody<Body>(schema: z.ZodType<Body>, body: unknown, path: Validated["path"] = []): Body {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const level = knownShapeOf(schema);
  throw new RequestInvalid(readableIssues(parsed.error.issues, { value: body, level, path }));
}
