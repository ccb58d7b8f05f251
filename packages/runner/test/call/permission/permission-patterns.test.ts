import type { JsonObject, Permission } from "@ambit/core/contract";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type ClassNames, head, isPattern, patternMatcher, textsIn } from "../../../src/call/pattern.js";

/** Whether a pattern matches a call, which has `schema` as its tool's. */
const matches = (pattern: string, effect: Permission, { name, input, schema, classNames }: Matched) => {
  const tool = schema && ({ name, kind: "callback", inputSchema: schema } as const);
  return patternMatcher({ name, input, tool }, classNames)(pattern, effect);
};

interface Matched {
  readonly name: string;
  readonly input: unknown;
  readonly schema?: JsonObject | undefined;
  readonly classNames?: ClassNames;
}

const nested = (value: unknown, levels: number): unknown =>
  levels === 0 ? value : nested([value], levels - 1);

test("the beginning of a text is found as fast behind any white space and invisible characters", () => {
  // Ten, each of four million parts if they were read one by one.
  const long = `${" \u200b".repeat(2_000_000)}rm\u200b \u200b -rf`;
  const { heads, complete } = textsIn({ steps: Array.from({ length: 10 }, () => long) });
  expect(complete).toBe(true);
  expect(new Set(heads.map((text) => text.slice(0, 6)))).toEqual(new Set(["rm -rf"]));
});

describe("a denial matches any text of the arguments, at any depth", () => {
  const attacks: readonly (readonly [what: string, input: unknown, prefix?: string])[] = [
    ["the command", { command: "rm -rf x" }],
    ["a key before it", { aaa: "ls", command: "rm -rf x" }],
    ["a leading space", { command: "  rm -rf x" }],
    ["a leading tab and line", { command: "\t\nrm -rf x" }],
    ["a leading no-break space", { command: "\u00a0rm -rf x" }],
    ["invisible characters", { command: "\u200br\u200bm -rf x" }],
    ["a leading NUL", { command: "\0rm -rf x" }],
    ["more white space than a prefix is long", { command: `${" ".repeat(5_000)}rm -rf x` }],
    ["wide white space within", { command: "rm  \t -rf x" }, "rm -rf"],
    ["the arguments of bash -c", { command: ["bash", "-c", "rm -rf x"] }],
    ["words of a list", { command: ["rm", "-rf", "x"] }, "rm -rf"],
    ["a program and its arguments", { command: "rm", args: ["-rf", "x"] }, "rm -rf"],
    ["the same, the other way round", { args: ["-rf", "x"], command: "rm" }, "rm -rf"],
    ["the same, with a text between", { command: "rm", aaa: "y", args: ["-rf", "x"] }, "rm -rf"],
    ["an object in a list", { steps: [{ env: { A: "b" } }, { run: "rm -rf x" }] }],
    ["a key", { files: { "rm -rf x": true } }],
    ["a nested key that could be a parameter", { programs: { rm: ["-rf", "x"] } }, "rm"],
    ["a key at the top that is no parameter's name", { "rm -rf x": 1 }],
    ["a number", { signal: 9 }, "9"],
    ["the arguments themselves", "rm -rf x"],
    ["what is too deep to look through", { a: nested("rm -rf x", 100) }],
    ["what is too much to look through", { a: Array(10_000).fill("x"), command: "rm" }],
    [
      "too many keys to look through",
      Object.fromEntries(Array.from({ length: 9_000 }, (_, n) => [`k${n}`, 1])),
    ],
  ];
  for (const [what, input, prefix = "rm"] of attacks)
    test(what, () => {
      for (const effect of ["deny", "ask"] as const) {
        expect(matches(`sh(${prefix}:*)`, effect, { name: "sh", input })).toBe(true);
      }
      // The control: another prefix doesn't match, unless the arguments can't be looked through.
      const isUnreadable = what.startsWith("what is too") || what.startsWith("too many");
      expect(matches("sh(curl:*)", "deny", { name: "sh", input })).toBe(isUnreadable);
    });

  test.each([
    ["a word within", { command: "ls rm" }],
    ["a parameter's name", { rm: 1 }],
    ["another tool's name", undefined],
    ["no text", { a: null }],
  ])("not %s", (what, input) => {
    const name = what === "another tool's name" ? "bash" : "sh";
    expect(matches("sh(rm:*)", "deny", { name, input: input ?? "rm" })).toBe(false);
  });

  test("an empty prefix matches every call", () => {
    expect(matches("sh(:*)", "deny", { name: "sh", input: {} })).toBe(true);
  });

  test("a thousand rules scan a megabyte once", () => {
    let reads = 0;
    const large = { a: Array.from({ length: 4_000 }, (_, n) => `${n} `.repeat(60)) };
    const input = new Proxy(large, {
      ownKeys: (target) => {
        reads += 1;
        return Reflect.ownKeys(target);
      },
    });
    const matchesCall = patternMatcher({ name: "sh", input, tool: undefined });
    for (let rule = 0; rule < 1_000; rule += 1) matchesCall(`sh(rm${rule}:*)`, "deny");
    expect(reads).toBeLessThan(5);
  });
});

describe("an allow rule matches only the field with the command", () => {
  const schema = (...names: string[]): JsonObject => ({
    type: "object",
    properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])),
  });
  const calls: readonly (readonly [what: string, input: unknown, isAllowed: boolean, schema?: JsonObject])[] =
    [
      ["the command", { command: "git push" }, true],
      ["a leading space", { command: " git push" }, true],
      ["the text itself", "git push", true],
      ["a program's words", { command: ["git", "push"] }, true],
      ["a description beside it", { command: "git push", description: "pushes", timeout: 3 }, true],
      ["another key before it", { note: "git", command: "rm -rf x" }, false],
      ["another key behind it", { command: "rm -rf x", note: "git" }, false],
      ["a second command", { command: "git push", cmd: "rm -rf x" }, false],
      ["a description alone", { description: "git" }, false],
      ["a command that is no text", { command: { git: "git" } }, false],
      ["a second command behind ;", { command: "git push; rm -rf x" }, false],
      ["a second command behind &&", { command: "git push && rm -rf x" }, false],
      ["a pipe", { command: "git log | sh" }, false],
      ["a second line", { command: "git push\nrm -rf x" }, false],
      ["a substitution", { command: "git push $(rm -rf x)" }, false],
      ["a redirection", { command: "git log > ../.profile" }, false],
      ["a path", { file_path: "git/x" }, true],
      ["a path that leaves", { file_path: "git/../../x" }, false],
      ["no arguments", {}, false],
      ["the schema's command", { note: "x", command: "git push" }, true, schema("note", "command")],
      ["the schema's first text", { to: "git", body: "x" }, true, schema("to", "body")],
      ["the schema's first text, last in the call", { body: "git", to: "x" }, false, schema("to", "body")],
      ["what the schema doesn't declare", { command: "git" }, false, schema("to")],
      ["what the schema doesn't declare, beside", { command: "git", to: "x" }, false, schema("to")],
    ];
  for (const [what, input, isAllowed, schema] of calls)
    test(what, () => {
      const subject = { name: "sh", input, schema };
      expect(matches("sh(git:*)", "allow", subject)).toBe(isAllowed);
      // The control: the whole tool is allowed, whatever its arguments.
      expect(matches("sh", "allow", subject)).toBe(true);
    });
});

test("a prefix longer than the compared text is refused", () => {
  expect(isPattern(`sh(${"a".repeat(256)}:*)`)).toBe(true);
  expect(isPattern(`sh(${"a".repeat(257)}:*)`)).toBe(false);
});

describe("a call with many rules and large arguments", () => {
  const rules = Array.from({ length: 1_000 }, (_, index) => `sh(other ${index}:*)`);

  test.each(["allow", "ask", "deny"] as const)("is read once by those that %s", (effect) => {
    let reads = 0;
    const input = {
      get command() {
        reads += 1;
        return "git push";
      },
    };
    const matching = patternMatcher({ name: "sh", input, tool: undefined });
    expect([...rules, "sh(git:*)"].filter((pattern) => matching(pattern, effect))).toEqual(["sh(git:*)"]);
    expect(reads).toBe(1);
  });

  test("is matched by the prefixes of its texts, and no others", () => {
    const text = fc.string({ maxLength: 6, unit: fc.constantFrom("a", "b", " ", "\ud800", "é", "z") });
    fc.assert(
      fc.property(fc.array(text, { maxLength: 12 }), text, (texts, prefix) => {
        const { heads } = textsIn(texts);
        const given = head(prefix);
        const begins = given === "" || heads.some((one) => one.startsWith(given));
        expect(matches(`sh(${prefix}:*)`, "deny", { name: "sh", input: texts })).toBe(begins);
      }),
    );
  });
});
