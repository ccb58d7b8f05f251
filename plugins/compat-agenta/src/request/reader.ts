import { type KnownShape, knownShapeOf, requestSchemaWith } from "@ambit/core/contract";
import { fields } from "../fields.js";
import { type OlderForm, olderForms } from "./older-forms.js";

/** How to read a level, in any spelling. */
export type LevelReader = ObjectReader | ListReader;

export interface ObjectReader {
  readonly kind: "object";
  /** By each accepted spelling of the key. */
  readonly keys: ReadonlyMap<string, Key>;
  readonly olderForm: OlderForm | undefined;
}

interface ListReader {
  readonly kind: "list";
  readonly element: LevelReader;
  /** A longer list is refused: it isn't translated. */
  readonly max: number;
}

interface Key {
  /** In the contract's spelling. */
  readonly name: string;
  readonly below: LevelReader | undefined;
  readonly isOlder: boolean;
}

function readerOf(level: KnownShape | undefined, path: string): LevelReader | undefined {
  if (level === undefined || level.kind === "map") return undefined;
  if (level.kind === "list") {
    const element = readerOf(level.element, `${path}[]`);
    return element === undefined ? undefined : { ...level, element };
  }
  const olderForm = olderForms.get(path);
  const keys = new Map<string, Key>();
  const add = (name: string, level: KnownShape | undefined, isOlder: boolean) => {
    const key = { name, below: readerOf(level, path === "" ? name : `${path}.${name}`), isOlder };
    keys.set(name, key).set(snakeCase(name), key);
  };
  for (const [name, below] of olderForm?.keys ?? []) add(name, below, true);
  for (const [name, below] of level.keys) add(name, below, false);
  return { kind: "object", keys, olderForm };
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

export const requestReader = readerOf(knownShapeOf(requestSchemaWith([fields])), "");
