import { z } from "zod";

/** The form of one value in a request. */
export type Form = z.ZodType<unknown>;

/** A problem whose message names what a request asks the provider for, such as "a fetch of an address". */
const asksFor = (message: string) => ({ code: "custom" as const, message });

/** Whatever the model alone reads: text, a tool's arguments, its result. Never a part of the request's own form. */
export const opaque: Form = z.unknown();

const isScalar = (value: unknown): boolean => typeof value !== "object" || value === null;
/** A text, number, boolean or null. */
export const scalar: Form = z.unknown().refine(isScalar);

const address = /^\s*[a-z][a-z0-9+.-]*:\/\//i;
/** Settings of a kind that is known to be harmless, of any form, without an address to fetch. */
export const settings: Form = z
  .unknown()
  .refine((value) => !some(value, (_key, one) => typeof one === "string" && address.test(one)), {
    error: "a fetch of an address",
  });

/** References of a JSON Schema to another document: some servers fetch it. */
const references: readonly string[] = ["$ref", "$dynamicRef", "$recursiveRef"];
/** A JSON Schema that refers only to itself. */
export const jsonSchema: Form = z
  .unknown()
  .refine(
    (value) =>
      !some(
        value,
        (key, one) => references.includes(key) && !(typeof one === "string" && one.startsWith("#")),
      ),
    { error: "a fetch of a JSON Schema" },
  );

/** Data in the request itself, as a `data:` URL. */
export const dataUrl: Form = z
  .unknown()
  .refine(
    (value) => value === undefined || value === null || (typeof value === "string" && /^data:/i.test(value)),
    {
      error: "a fetch of an address",
    },
  );

/** Nothing: absent, null, false or an empty list. @param what it asks for otherwise */
export const nothing = (what: string): Form =>
  z
    .unknown()
    .refine((value) => value == null || value === false || (Array.isArray(value) && value.length === 0), {
      error: what,
    });

/** One of these texts. @param what it asks for otherwise */
export const oneOf = (what: string, ...texts: readonly string[]): Form =>
  z.unknown().refine((value) => value == null || texts.some((text) => text === value), { error: what });

/** A text, number, boolean or null, or an object or list of this form. */
export const orScalar = (form: Form): Form =>
  z.unknown().superRefine((value, context) => {
    if (!isScalar(value)) pass(form, value, context);
  });

export const listOf = (form: Form): Form => z.array(form).nullish();

/** An object with these members, each of which may be absent, and no others. */
export const object = (members: Readonly<Record<string, Form>>): Form =>
  z.strictObject(Object.fromEntries(Object.entries(members).map(([key, form]) => [key, form.optional()])));

/** Members of the same form. */
export const each = (form: Form, names: string): Readonly<Record<string, Form>> =>
  Object.fromEntries(names.split(" ").map((name) => [name, form]));

interface Variants {
  /** The member that tells the variants apart. Default `type`. */
  readonly by?: string;
  /** The variant of an object without that member. */
  readonly otherwise?: Form;
  /** What an object of an unknown variant asks for. */
  readonly unknown: (variant: string) => string;
}

/** An object in one of several forms, told apart by a member. `*` at the end of a name is a date: eight digits. */
export const variants = (
  forms: Readonly<Record<string, Form>>,
  { by = "type", otherwise, unknown }: Variants,
): Form =>
  z.unknown().superRefine((value, context) => {
    const variant = memberOf(value, by);
    const form =
      variant === undefined || variant === null
        ? otherwise
        : Object.entries(forms).find(([name]) => isNamed(name, variant))?.[1];
    if (form === undefined) context.addIssue(asksFor(unknown(quoted(variant))));
    else pass(form, value, context);
  });

/** An object whose first known member decides its form: `{"text": …}`, `{"inlineData": …}`. */
export const byMember = (forms: Readonly<Record<string, Form>>, unknown: (key: string) => string): Form => {
  // Made once: it takes half a millisecond.
  const members = object(forms);
  return z.unknown().superRefine((value, context) => {
    const keys = typeof value === "object" && value !== null ? Object.keys(value) : [];
    const strange = keys.find((key) => !Object.hasOwn(forms, key));
    if (strange !== undefined) context.addIssue(asksFor(unknown(quoted(strange))));
    else pass(members, value, context);
  });
};

function pass(form: Form, value: unknown, context: z.RefinementCtx): void {
  const [issue] = form.safeParse(value).error?.issues ?? [];
  if (issue === undefined) return;
  const message = issue.code === "custom" ? issue.message : "";
  const unknownKey = issue.code === "unrecognized_keys" ? (issue.keys[0] ?? "") : undefined;
  context.addIssue({
    ...asksFor(message),
    path: unknownKey === undefined ? issue.path : [...issue.path, unknownKey],
  });
}

/** Whether any member or item at any depth satisfies `test`. Iterative. */
function some(value: unknown, test: (key: string, value: unknown) => boolean): boolean {
  const open: unknown[] = [{ "": value }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next !== "object" || next === null) continue;
    for (const [key, one] of Object.entries(next)) {
      if (test(key, one)) return true;
      if (typeof one === "object" && one !== null) open.push(one);
    }
  }
  return false;
}

function memberOf(value: unknown, key: string): unknown {
  if (typeof value !== "object" || value === null) return undefined;
  return Object.entries(value).find(([name]) => name === key)?.[1];
}

function isNamed(name: string, variant: unknown): boolean {
  if (typeof variant !== "string") return false;
  if (!name.endsWith("*")) return variant === name;
  const before = name.slice(0, -1);
  return variant.startsWith(before) && /^\d{8}$/.test(variant.slice(before.length));
}

/** The agent's own word, as far as it fits a log line. */
export function quoted(word: unknown): string {
  return typeof word === "string" && /^[\w.:[\]-]{1,80}$/.test(word) ? `'${word}'` : "of an unknown kind";
}
