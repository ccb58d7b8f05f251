import { z } from "zod";
import { ConfigurationInvalid } from "./problems.js";
import { denialSchema, logLevels } from "./schema.js";

/** A variable that a compose file passes on although nobody set it is as good as absent. */
const blankIsAbsent = (value: unknown) => (value === "" ? undefined : value);
const optionalText = z.preprocess(blankIsAbsent, z.string().optional());

const environmentSchema = z.object({
  AMBIT_CONFIG: optionalText,
  AMBIT_HOST: optionalText,
  AMBIT_PORT: z.preprocess(
    blankIsAbsent,
    z
      .string()
      .regex(/^\d{1,5}$/, "must be a port: 0 to 65535")
      .transform(Number)
      .refine((port) => port <= 65_535, "must be a port: 0 to 65535")
      .optional(),
  ),
  // An empty token is never meant: whoever passes one believes that the server is guarded.
  AMBIT_TOKEN: z
    .string()
    .min(1, "is empty: give it a value, or unset it")
    .regex(/^[\x21-\x7e]*$/, "must be printable ASCII without spaces, so that a header can carry it")
    .optional(),
  AMBIT_DENY_PERMISSIONS: z
    .preprocess(blankIsAbsent, z.string().optional())
    .transform((text) => (text === "true" ? true : patternsOf(text ?? "")))
    .pipe(denialSchema),
  AMBIT_LOG_LEVEL: z.preprocess(
    blankIsAbsent,
    z.enum(logLevels, { error: `must be one of ${logLevels.join(", ")}` }).optional(),
  ),
});

/** What the process's environment says. */
export type Environment = z.output<typeof environmentSchema>;

/**
 * Reads the variables once, and takes the token out of them: what runs later in this process can't find it there.
 * @throws ConfigurationInvalid naming each variable and its cure.
 */
export function takeEnvironment(variables: NodeJS.ProcessEnv): Environment {
  const parsed = environmentSchema.safeParse(variables);
  delete variables.AMBIT_TOKEN;
  if (parsed.success) return parsed.data;
  throw new ConfigurationInvalid(
    "environment",
    parsed.error.issues.map(({ path, message }) => `${String(path[0])} ${message}`),
  );
}

/** `Bash(rm:*),write_file`: patterns are parted by commas, but not by those within parentheses. */
function patternsOf(text: string): string[] {
  return [...text.matchAll(/(?:\([^)]*\)|[^,(])+/g)].map(([pattern]) => pattern.trim()).filter(Boolean);
}
