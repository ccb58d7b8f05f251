import { z } from "zod";

/** A name or address in a commit. */
const nameSchema = z
  .string()
  .min(1)
  .max(256)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused.
  .regex(/^(?!\s)[^<>\u0000-\u001f\u007f-\u009f]+(?<!\s)$/u, "must be one line without < and >");

/** Who makes a commit. */
export const personSchema = z.strictObject({
  name: nameSchema.meta({ description: "The name in a commit." }),
  email: nameSchema.meta({ description: "The address in a commit." }),
});
export type Person = z.infer<typeof personSchema>;
