import { isPattern } from "@ambit/runner";
import { z } from "zod";

// A pattern that can never match would look like protection.
const patternSchema = z
  .string()
  .min(1)
  .refine(isPattern, "must be a tool's Name, or Name(prefix:*)")
  .refine(
    (pattern) => !/^[^(]*[*?]/.test(pattern),
    "must name the tool: a name has no wildcard, and `true` in place of the list denies every call",
  );

/** Every call (`true`), or calls that match a pattern: `Name`, `Name(prefix:*)`. */
export const denialSchema = z.union([z.literal(true), z.array(patternSchema)]);
