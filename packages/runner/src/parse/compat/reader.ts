import { type Issue, type JsonObject, runRequestSchema, type Warning } from "@ambit/core/contract";
import type { z } from "zod";
import { pathText, readableIssues } from "../issue-text.js";
import { type Level, levelOf, mergeLevels } from "../level.js";
import {
  olderInteractionsSchema,
  olderMcpServerSchema,
  olderRequestSchema,
  olderToolSchema,
} from "./older-fields.js";
import {
  type Translate,
  translateInteractions,
  translateMcpServer,
  translateRequest,
  translateTool,
} from "./older-spelling.js";

/** The input of a walk, and its findings. */
export interface Findings {
  readonly issues: Issue[];
  readonly ignorable: ReadonlySet<string>;
  /** By path without indices: a thousand entries with the same unknown key cause one warning. */
  readonly warnings: Map<string, Warning>;
}

/** A level's fields as earlier wires had them. */
interface OlderForm {
  readonly level: Level | undefined;
  translate(
    current: JsonObject,
    older: JsonObject,
    path: readonly PropertyKey[],
    findings: Findings,
  ): JsonObject;
}

function olderForm<Schema extends z.ZodObject>(
  schema: Schema,
  translate: Translate<z.output<Schema>>,
): OlderForm {
  const level = levelOf(schema);
  return {
    level,
    translate(current, older, path, { issues, warnings }) {
      const parsed = schema.safeParse(older);
      if (!parsed.success) {
        issues.push(...readableIssues(parsed.error.issues, { value: older, level, path }));
        return current;
      }
      const at = (key: string) => pathText([...path, key]);
      return translate(current, parsed.data, {
        refuse: (key, message) => issues.push({ path: at(key), message }),
        warn: (key, message) => warnings.set(at(key), { path: at(key), message }),
      });
    },
  };
}

const olderForms: ReadonlyMap<string, OlderForm> = new Map([
  ["", olderForm(olderRequestSchema, translateRequest)],
  ["interactions", olderForm(olderInteractionsSchema, translateInteractions)],
  ["customTools[]", olderForm(olderToolSchema, translateTool)],
  ["mcpServers[]", olderForm(olderMcpServerSchema, translateMcpServer)],
]);

/** How to read a level, in any spelling. */
export type Reader = ObjectReader | ListReader | MapReader;

export interface ObjectReader {
  readonly kind: "object";
  /** By each accepted spelling of the key. */
  readonly keys: ReadonlyMap<string, Key>;
  /** Its path, without indices: `customTools[]`. */
  readonly path: string;
  readonly olderForm: OlderForm | undefined;
}

interface ListReader {
  readonly kind: "list";
  readonly element: Reader | undefined;
  readonly max: number;
}

interface MapReader {
  readonly kind: "map";
}

interface Key {
  /** In the contract's spelling. */
  readonly name: string;
  readonly below: Reader | undefined;
  readonly isOlder: boolean;
}

function readerOf(level: Level | undefined, path: string): Reader | undefined {
  if (level === undefined || level.kind === "map") return level;
  if (level.kind === "list") return { ...level, element: readerOf(level.element, `${path}[]`) };
  const form = olderForms.get(path);
  const keys = new Map<string, Key>();
  const older = form?.level?.kind === "object" ? form.level.keys : new Map<string, Level | undefined>();
  for (const [fields, isOlder] of [
    [older, true],
    [level.keys, false],
  ] as const) {
    for (const [name, below] of fields) {
      const key = { name, below: readerOf(below, path === "" ? name : `${path}.${name}`), isOlder };
      keys.set(name, key).set(snakeCase(name), key);
    }
  }
  return { kind: "object", keys, path, olderForm: form };
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

const currentLevel = levelOf(runRequestSchema);
export const requestReader = readerOf(currentLevel, "");

/** Every key that a request may have, on any wire: what a misspelt one is compared with. */
export const knownLevel = withOlder(currentLevel, "");

function withOlder(level: Level | undefined, path: string): Level | undefined {
  if (level === undefined || level.kind === "map") return level;
  if (level.kind === "list") return { ...level, element: withOlder(level.element, `${path}[]`) };
  const keys = new Map<string, Level | undefined>();
  for (const [key, below] of level.keys)
    keys.set(key, withOlder(below, path === "" ? key : `${path}.${key}`));
  return mergeLevels({ kind: "object", keys }, olderForms.get(path)?.level);
}
