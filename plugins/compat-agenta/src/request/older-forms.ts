import {
  type Issue,
  type JsonObject,
  type KnownShape,
  knownShapeOf,
  pathText,
  readableIssues,
} from "@ambit/core/contract";
import type { z } from "zod";
import { olderMcpServerSchema, olderRequestSchema, olderToolSchema } from "./older-fields.js";
import { type Translate, translateMcpServer, translateRequest, translateTool } from "./older-spelling.js";

/** A level's fields as earlier wires had them. */
export interface OlderForm {
  readonly keys: ReadonlyMap<string, KnownShape | undefined>;
  translate(
    current: JsonObject,
    older: JsonObject,
    path: readonly PropertyKey[],
    issues: Issue[],
  ): JsonObject;
}

function olderForm<Schema extends z.ZodObject>(
  schema: Schema,
  translate: Translate<z.output<Schema>>,
): OlderForm {
  const level = knownShapeOf(schema);
  return {
    keys: level?.kind === "object" ? level.keys : new Map(),
    translate(current, older, path, issues) {
      const parsed = schema.safeParse(older);
      if (!parsed.success) {
        issues.push(...readableIssues(parsed.error.issues, { value: older, level, path }));
        return current;
      }
      return translate(current, parsed.data, (key, message) =>
        issues.push({ path: pathText([...path, key]), message }),
      );
    },
  };
}

/** By the path of their level, without indices. */
export const olderForms: ReadonlyMap<string, OlderForm> = new Map([
  ["", olderForm(olderRequestSchema, translateRequest)],
  ["customTools[]", olderForm(olderToolSchema, translateTool)],
  ["mcpServers[]", olderForm(olderMcpServerSchema, translateMcpServer)],
]);

export const olderKeys: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  [...olderForms].map(([place, { keys }]) => [place, [...keys.keys()]]),
);
