import { isPattern } from "@ambit/runner";
import { z } from "zod";

/** Every call (`true`), or calls that match a pattern: `Name`, `Name(prefix:*)`. */
export const denialSchema = z.union([
  z.literal(true),
  // A pattern that can never match would look like protection.
  z.array(z.string().min(1).refine(isPattern, "must be a tool's Name, or Name(prefix:*)")),
]);
