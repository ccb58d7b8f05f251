import { nearestKey, RequestInvalid, runIdSchema } from "@ambit/core";
import type { JsonObject } from "@ambit/core/contract";
import { z } from "zod";

/** A parameter of a query: how it is described, and how it is read. */
export interface QueryParameter<Value> {
  readonly name: string;
  readonly description: string;
  readonly schema: JsonObject;
  /** @param text null where it is absent. @throws RequestInvalid */
  read(text: string | null): Value;
}

/** The query of one request. */
export class Query {
  constructor(readonly given: URLSearchParams) {}

  /** @throws RequestInvalid */
  read<Value>(parameter: QueryParameter<Value>): Value {
    return parameter.read(this.given.get(parameter.name));
  }

  /**
   * @throws RequestInvalid for a parameter that isn't one of these, since a misspelled filter would show everything; or for one
   * that is given more than once.
   */
  requireKnown(parameters: readonly QueryParameter<unknown>[]): void {
    const names = parameters.map(({ name }) => name);
    const issues = [...new Set(this.given.keys())].flatMap((name) => {
      if (names.includes(name)) {
        const isSingle = this.given.getAll(name).length === 1;
        return isSingle ? [] : [{ path: name, message: "is given more than once: give it once" }];
      }
      const meant = nearestKey(name, names);
      const fix = meant === undefined ? `expected one of ${names.join(", ")}` : `did you mean ${meant}?`;
      return [{ path: name, message: `is unknown here: ${fix}` }];
    });
    if (issues.length > 0) throw new RequestInvalid(issues);
  }
}

export function text(
  name: string,
  description: string,
  form: Pick<TextSchema, "pattern" | "maxLength"> = {},
): QueryParameter<string | undefined> {
  return { name, description, schema: { type: "string", ...form }, read: (given) => given ?? undefined };
}

/** A text in OpenAPI. */
interface TextSchema extends JsonObject {
  readonly pattern?: string;
  readonly maxLength?: number;
}

export function oneOf<State extends string>(
  name: string,
  states: z.ZodType<State> & { readonly options: readonly State[] },
  description: string,
): QueryParameter<State | undefined> {
  const read = (given: string | null) => {
    const parsed = states.optional().safeParse(given ?? undefined);
    if (parsed.success) return parsed.data;
    throw new RequestInvalid([{ path: name, message: `must be one of ${states.options.join(", ")}` }]);
  };
  return { name, description, schema: { enum: [...states.options] }, read };
}

/** Digits of a number in a query. */
const maxDigits = 15;
const maxCount = 10 ** maxDigits - 1;

export const countSchema: JsonObject = { type: "integer", minimum: 0, maximum: maxCount };

/** A run's id, in a path, a query or a header. */
export const runIdJson: JsonObject = jsonSchemaOf(runIdSchema);

function jsonSchemaOf(schema: z.ZodType): JsonObject {
  const { $schema, ...json } = z.toJSONSchema(schema);
  return json;
}

export function count(name: string, description: string, byDefault: number): QueryParameter<number> {
  const read = (given: string | null) => countOf(name, given ?? undefined, byDefault);
  return { name, description, schema: countSchema, read };
}

/** A number in a query or header. @throws RequestInvalid */
export function countOf(path: string, given: string | undefined, byDefault: number): number {
  if (given === undefined || given === "") return byDefault;
  if (/^\d+$/.test(given) && given.length <= maxDigits) return Number(given);
  throw new RequestInvalid([{ path, message: `must be a whole number from 0 to ${maxCount}` }]);
}
