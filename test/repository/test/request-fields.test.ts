import {
  type KnownShape,
  knownShapeOf,
  normaliseBoundary,
  requirementsOf,
  runRequestSchema,
  schemaFields,
} from "@ambit/core";
import { historyOf, parseRunRequest, promptOf } from "@ambit/runner";
import { describe, expect, test } from "vitest";
import { requestFields } from "../../../scripts/docs/request-fields.mjs";
import { readText } from "../rules/tree.js";

const fields = requestFields(schemaFields(runRequestSchema));
const golden = (name: string): unknown => JSON.parse(readText(`test/golden/${name}.json`).text);
const known = pathsOf(knownShapeOf(runRequestSchema));

test("every key of the schema is documented", () => {
  expect(fields.map(({ path }) => path)).toEqual(known);
});

test("the schema's keys are those of every level", () => {
  expect(known).toEqual(
    expect.arrayContaining([
      "harness",
      "messages[].content[].toolCallId",
      "customTools[].call.args_into",
      "mcpServers[].connection.url",
      "mcpServers[].connection.command",
      "sandboxPermission.network.allowlist",
    ]),
  );
  expect(known).not.toEqual(expect.arrayContaining([expect.stringMatching(/inputSchema\.|runContext\./)]));
});

test("the golden requests together contain every field", () => {
  const names = ["minimal", "full", "continuation", "older-spellings.current"];
  const present = new Set(names.flatMap((name) => [...pathsIn(golden(`request-${name}`))]));
  expect(known.filter((path) => !present.has(path))).toEqual([]);
});

test.each(fields)("$path is documented in a sentence", ({ description }) => {
  expect(description).toMatch(/^[A-Z\d`].*[.…]$/s);
});

const informational = fields.filter(({ effect }) => effect === "informational");

describe("an informational field changes nothing", () => {
  test.each(informational)("$path", ({ path }) => {
    const whole = golden("request-full");
    const without = structuredClone(whole);
    expect(removeAt(without, path.split("."))).toBeGreaterThan(0);
    expect(effectsOf(without)).toEqual(effectsOf(whole));
  });

  test("whereas an effective field does", () => {
    const without = structuredClone(golden("request-full"));
    removeAt(without, "sandboxPermission.network.allowlist".split("."));
    expect(effectsOf(without)).not.toEqual(effectsOf(golden("request-full")));
  });
});

describe("a refused field refuses", () => {
  const values: Readonly<Record<string, object>> = {
    "messages[].content[].attachmentId": {
      messages: [{ role: "user", content: [{ type: "attachment", attachmentId: "a" }] }],
    },
  };

  test.each(fields.filter(({ effect }) => effect === "refused"))("$path", ({ path }) => {
    const parsed = parseRunRequest(values[path]);
    expect(parsed).toMatchObject({ ok: false, issues: [{ path: path.replaceAll("[]", "[0]") }] });
  });
});

/** What a run is made of, without what is only passed through. */
function effectsOf(body: unknown) {
  const parsed = parseRunRequest(body);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
  const { request } = parsed;
  const { boundary } = normaliseBoundary(request.sandboxPermission);
  const acting: unknown = structuredClone(request);
  for (const { path } of informational) removeAt(acting, path.split("."));
  return {
    acting,
    boundary,
    required: requirementsOf(boundary, request),
    prompt: promptOf(request.messages),
    history: historyOf(request.messages).length,
  };
}

/** Removes all occurrences of a field; returns their number. */
function removeAt(value: unknown, [step = "", ...rest]: string[]): number {
  if (typeof value !== "object" || value === null) return 0;
  const key = step.replaceAll("[]", "");
  if (!Object.hasOwn(value, key)) return 0;
  if (rest.length === 0) return Reflect.deleteProperty(value, key) ? 1 : 0;
  const inner: unknown = Reflect.get(value, key);
  const entries: unknown[] = step.endsWith("[]") && Array.isArray(inner) ? inner : [inner];
  return entries.reduce<number>((count, entry) => count + removeAt(entry, rest), 0);
}

/** Every path that the contract knows. Inside an opaque value there are none. */
function pathsOf(level: KnownShape | undefined, prefix = ""): string[] {
  if (level === undefined || level.kind === "map") return [];
  if (level.kind === "list") return pathsOf(level.element, `${prefix}[]`);
  return [...level.keys].flatMap(([key, below]) => {
    const path = prefix === "" ? key : `${prefix}.${key}`;
    return [path, ...pathsOf(below, path)];
  });
}

function pathsIn(value: unknown, prefix = ""): Set<string> {
  if (Array.isArray(value)) return new Set(value.flatMap((entry) => [...pathsIn(entry, `${prefix}[]`)]));
  if (typeof value !== "object" || value === null) return new Set();
  return new Set(
    Object.entries(value).flatMap(([key, inner]) => {
      const path = prefix === "" ? key : `${prefix}.${key}`;
      return [path, ...pathsIn(inner, path)];
    }),
  );
}
