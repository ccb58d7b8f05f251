import assert from "node:assert/strict";
import {
  type Dialect,
  isJsonObject,
  type JsonObject,
  requestSchemaWith,
  type Translation,
} from "@ambit/core/plugin";
import { deepFrozen } from "../executor/frozen.js";

/** One request of a dialect's callers. */
export interface DialectCase {
  readonly name: string;
  readonly request: JsonObject;
  /** The same in the contract's spelling. Default: only its issues are checked. */
  readonly translated?: JsonObject;
  /** The paths of its issues. Default: none. */
  readonly issues?: readonly string[];
}

/** A requirement on every dialect, for each of its cases. */
export interface DialectCheck {
  readonly title: string;
  check(dialect: Dialect, one: DialectCase): void;
}

/** What a caller may send where a dialect expects another type. */
const anyJson: readonly unknown[] = [
  null,
  true,
  -1,
  "",
  [],
  {},
  [null, [[]], { a: 1 }],
  { constructor: 1, toString: null },
];

export const dialectChecks: readonly DialectCheck[] = [
  {
    title: "is translated, always in the same way, and isn't changed itself",
    check: (dialect, { request, translated, issues = [] }) => {
      const translation = translate(dialect, request);
      assert.deepEqual(
        translation.issues.map(({ path }) => path),
        issues,
      );
      if (translated !== undefined) assert.deepEqual(translation.request, translated);
      assert.deepEqual(translate(dialect, request), translation, "a second translation must be the same");
      if (issues.length > 0) return;
      const { error } = requestSchemaWith([dialect.fields ?? {}]).safeParse(translation.request);
      assert.equal(error?.message, undefined, "it must be a request of the contract");
    },
  },
  {
    title: "keeps what the dialect doesn't know",
    check: (dialect, { request }) => {
      const unknown = { a: [1] };
      const { request: after } = translate(dialect, { ...request, "kit-unknown": unknown });
      assert.deepEqual(after["kit-unknown"], unknown);
    },
  },
  {
    title: "may have any JSON in place of each value",
    check: (dialect, { request }) => {
      for (const key of new Set([...Object.keys(request), ...(dialect.keys[""] ?? [])]))
        for (const value of anyJson) translate(dialect, { ...request, [key]: value });
    },
  },
];

/** It is frozen: whatever changes it throws. */
function translate(dialect: Dialect, request: JsonObject): Translation {
  const translation = dialect.translate(deepFrozen(structuredClone(request)));
  const { request: after, issues } = translation;
  assert.ok(isJsonObject(after) && Array.isArray(issues), "`translate` must return { request, issues }");
  for (const { path, message } of issues)
    assert.ok(typeof path === "string" && typeof message === "string", "an issue is { path, message }");
  return translation;
}

/** One that needs no translation is returned itself, so that the contract's own callers pay nothing. */
export function requireOwnSpelling(dialect: Dialect): void {
  const request = { harness: "demo", messages: [{ role: "user", content: "hello" }] };
  const translation = translate(dialect, request);
  assert.deepEqual(translation, { request, issues: [] });
  const same = deepFrozen(request);
  assert.equal(dialect.translate(same).request, same, "it must be the request itself, and no copy");
  const { tokenHeaders = [] } = dialect;
  for (const name of tokenHeaders) assert.equal(name, name.toLowerCase(), "tokenHeaders are in lower case");
}
