import { z } from "zod";
import { nearestKey } from "../contract/index.js";

/** A line for each problem that a schema of settings found: path, reason, and the name that was probably meant. */
export function settingsProblems(error: z.ZodError, schema: z.ZodType): readonly string[] {
  return error.issues.flatMap((issue) => {
    if (issue.code !== "unrecognized_keys") return [`${pathOf(issue.path)}${issue.message}`];
    const known = keysAt(schema, issue.path);
    return issue.keys.map((key) => {
      const meant = nearestKey(key, known);
      const fix =
        meant === undefined ? `known are ${known.join(", ") || "none"}` : `did you mean \`${meant}\`?`;
      return `${pathOf([...issue.path, key])}is not a known setting: ${fix}`;
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
