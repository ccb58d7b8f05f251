import { expect, test } from "vitest";
import { z } from "zod";
import { settingsProblems } from "../../src/registry/load.js";

const schema = z.strictObject({
  agents: z.partialRecord(z.enum(["claude", "codex"]), z.strictObject({ command: z.string().optional() })),
  prices: z.record(z.string(), z.strictObject({ input: z.number() })).default({}),
  request: z.union([z.string(), z.number()]),
});

function problemsOf(given: object): readonly string[] {
  const parsed = schema.safeParse(given);
  return parsed.success ? [] : settingsProblems(parsed.error, schema, given);
}

test("a name that a map can't have is answered with those that it can", () => {
  expect(problemsOf({ request: "", agents: { cluade: {} } })).toEqual([
    "agents.cluade is not a known setting: did you mean `claude`?",
  ]);
  expect(problemsOf({ request: "", agents: { nope: {} } })).toEqual([
    "agents.nope is not a known setting: known are claude, codex",
  ]);
});

test("a setting in an entry of a map is answered with those of the entry", () => {
  expect(problemsOf({ request: "", agents: { claude: { comand: "" } } })).toEqual([
    "agents.claude.comand is not a known setting: did you mean `command`?",
  ]);
  expect(problemsOf({ request: "", agents: {}, prices: { m: { input: 1, xyz: 1 } } })).toEqual([
    "prices.m.xyz is not a known setting: known are input",
  ]);
});

test("a missing setting of several types is required", () => {
  expect(problemsOf({ agents: {} })).toEqual(["request is required: a string, or a number"]);
});
