import { readFileSync } from "node:fs";
import { requestSchemaWith, runRequestSchema, schemaFields } from "@ambit/core/contract";
import { commandIn, parseRunRequest } from "@ambit/runner";
import { describe, expect, test } from "vitest";
import { fields } from "../src/fields.js";
import { agenta } from "../src/index.js";
import { issuesOf, requestOf } from "./parsing.js";

/** A request with nothing but every field that the contract doesn't have. */
const everyField: Readonly<Record<string, unknown>> = JSON.parse(
  readFileSync(new URL("every-field.json", import.meta.url), "utf8"),
);

const contractPaths = new Set(schemaFields(runRequestSchema).map(({ path }) => path));
const added = schemaFields(requestSchemaWith([fields])).filter(({ path }) => !contractPaths.has(path));

describe("the fields that the contract doesn't have", () => {
  test("are kept as they were sent, and in snake_case too", () => {
    expect(requestOf(everyField)).toMatchObject(everyField);
    const { controlCommandId, ...others } = everyField;
    expect(requestOf({ ...others, control_command_id: controlCommandId })).toEqual(requestOf(everyField));
  });

  test("are unknown keys without this dialect, each refused by its path", () => {
    const parsed = parseRunRequest(everyField);
    const refused = parsed.ok ? [] : parsed.issues.map(({ path }) => path).toSorted();
    expect(refused).toEqual(
      [
        "connection",
        "controlCommandId",
        "effectiveParameters",
        "gatewayPolicy",
        "messages[0].displayContent",
        "modelCapabilities",
        "modelConnection.customConnection",
        "modelConnection.protocol",
        "streamId",
        "tools",
      ].toSorted(),
    );
  });

  test.each<[body: object, path: string]>([
    [{ streamId: 1 }, "streamId"],
    [{ tools: [1] }, "tools[0]"],
    [{ connection: { mode: "a", slag: "b" } }, "connection.slag"],
    [{ controlCommandId: "" }, "controlCommandId"],
    [{ controlCommandId: "c".repeat(257) }, "controlCommandId"],
    [{ messages: [{ role: "user", displayContent: 1 }] }, "messages[0].displayContent"],
    [{ modelConnection: { protocol: 1 } }, "modelConnection.protocol"],
  ])("%j is refused", (body, path) => {
    expect(issuesOf(body).map((issue) => issue.path)).toEqual([path]);
  });

  test("a slip of one is recognised", () => {
    expect(issuesOf({ streamid: "a" })).toMatchObject([
      { path: "streamid", message: expect.stringContaining("did you mean `streamId`?") },
    ]);
  });

  test.each(added)("$path is documented in a sentence, and a golden value has it", ({ path, meta }) => {
    // What a table of integrations contains is documented with the table.
    if (path.startsWith("gatewayPolicy.integrations[]")) return;
    expect(meta?.description).toMatch(/^[A-Z\d`].*[.…]$/s);
    expect(JSON.stringify(everyField)).toContain(`"${path.split(/[.[]/).at(-1)}"`);
  });
});

test("a request's command is the same in both spellings, and none where it is refused", () => {
  const commandOf = (request: Readonly<Record<string, unknown>>) => commandIn([agenta], request)?.id;
  expect(commandOf({ controlCommandId: "c" })).toBe("c");
  expect(commandOf({ control_command_id: "c" })).toBe("c");
  for (const id of ["", "c".repeat(257), 1, null, undefined])
    expect(commandOf({ controlCommandId: id })).toBeUndefined();
});
