import { z } from "zod";

/**
 * How a field holds a secret, which decides which parts of its value are secret by themselves:
 * - `credential`: a key, a token, a connection string, JSON with keys in it
 * - `password`: the same, or `user:password`
 * - `authorization`: the value of a header, with its scheme
 * - `headers`: an object of such values by name; some are no secret, such as `Accept`
 * - `url`: its user info, and values in its query that are named like secrets
 * - `address`: a URL that is itself a secret, since anyone who knows it may post to it
 * - `login`: an agent's stored login, as an object
 */
export type SecretKind =
  | "credential"
  | "password"
  | "authorization"
  | "headers"
  | "url"
  | "address"
  | "login";

const kinds = z.registry<{ readonly kind: SecretKind }>();

/**
 * Marks a field of a request or a configuration as a secret: the runner hides its values in events, results and logs. Of a
 * record, mark the schema of its values, except for `headers`.
 */
export function secret<Schema extends z.ZodType>(schema: Schema, kind: SecretKind = "credential"): Schema {
  // A schema may be shared by fields that hold no secret.
  const marked = schema.clone();
  kinds.add(marked, { kind });
  return marked;
}

/** Whether the value of this name is probably a secret: in a URL's query, a connection string, JSON or the log. */
export function suggestsSecret(name: string): boolean {
  return /pass(word|wd|phrase)?$|pwd$|token$|secret$|credential|api[-_]?key$|private[-_]?key$|^key$|^sig(nature)?$|[-_]signature$/i.test(
    name,
  );
}

/** The kind of a schema's mark; undefined for a schema that isn't marked. */
export function secretKind(schema: z.core.$ZodType): SecretKind | undefined {
  return kinds.get(schema)?.kind;
}
