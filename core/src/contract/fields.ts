import { boundaryFields } from "./fields/boundary.js";
import type { FieldMeaning, FieldMeanings } from "./fields/field.js";
import { runFields } from "./fields/run.js";
import { toolFields } from "./fields/tools.js";
import { type Level, levelOf } from "./level.js";
import { runRequestSchema } from "./request.js";

export interface Field extends FieldMeaning {
  /** `customTools[].callRef`: `[]` stands for each entry of a list. */
  readonly path: string;
}

/** The table as written, by path. */
export const fieldMeanings: FieldMeanings = { ...runFields, ...toolFields, ...boundaryFields };

/** What every field of a request does here, in the schema's order. A test holds it to exactly the schema's keys. */
export const fields: readonly Field[] = pathsOf(levelOf(runRequestSchema)).flatMap((path) => {
  const meaning = fieldMeanings[path];
  return meaning === undefined ? [] : [{ path, ...meaning }];
});

/** Every path that the contract knows; what lies in opaque values has none. */
export function pathsOf(level: Level | undefined, prefix = ""): string[] {
  if (level === undefined || level.kind === "map") return [];
  if (level.kind === "list") return pathsOf(level.element, `${prefix}[]`);
  return [...level.keys].flatMap(([key, below]) => {
    const path = prefix === "" ? key : `${prefix}.${key}`;
    return [path, ...pathsOf(below, path)];
  });
}
