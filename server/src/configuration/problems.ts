import { distance } from "fastest-levenshtein";
import { z } from "zod";

/** What the deployer must mend, all at once: a configuration file, a variable, an argument. */
export class ConfigurationInvalid extends Error {
  override readonly name = "ConfigurationInvalid";

  /** @param where the file or variables that hold the faults; @param problems one line each, with its cure. */
  constructor(
    readonly where: string,
    readonly problems: readonly string[],
    options?: ErrorOptions,
  ) {
    super(`${where}: ${problems.join("; ")}`, options);
  }
}

/** What zod found, a line for each: path, reason, and the name that was probably meant. */
export function problemsOf(error: z.ZodError, schema: z.ZodType): readonly string[] {
  return error.issues.flatMap((issue) => {
    if (issue.code !== "unrecognized_keys") return [`${pathOf(issue.path)}${issue.message}`];
    const known = keysAt(schema, issue.path);
    return issue.keys.map((key) => {
      const meant = nearest(key, known);
      const cure = meant === undefined ? `known are ${known.join(", ")}` : `did you mean \`${meant}\`?`;
      return `${pathOf([...issue.path, key])}is not a known setting: ${cure}`;
    });
  });
}

function pathOf(path: readonly PropertyKey[]): string {
  const text = path.reduce<string>(
    (left, step) =>
      typeof step === "number" ? `${left}[${step}]` : `${left}${left === "" ? "" : "."}${String(step)}`,
    "",
  );
  return text === "" ? "" : `${text} `;
}

/** The keys that an object of the schema may have at a path. */
function keysAt(schema: z.core.$ZodType, path: readonly PropertyKey[]): readonly string[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault) {
    return keysAt(schema.unwrap(), path);
  }
  if (schema instanceof z.ZodUnion) return schema.options.flatMap((option) => keysAt(option, path));
  const [step, ...rest] = path;
  if (schema instanceof z.ZodArray) return keysAt(schema.element, rest);
  if (!(schema instanceof z.ZodObject)) return [];
  if (step === undefined) return Object.keys(schema.shape).filter((key) => !key.startsWith("$"));
  const below = schema.shape[String(step)];
  return below === undefined ? [] : keysAt(below, rest);
}

function nearest(word: string, known: readonly string[]): string | undefined {
  const near = known
    .map((candidate) => ({ candidate, edits: distance(word.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ candidate, edits }) => edits <= Math.max(2, Math.floor(candidate.length / 3)))
    .sort((one, other) => one.edits - other.edits);
  return near[0]?.candidate;
}
