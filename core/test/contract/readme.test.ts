import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { eventRows } from "../../scripts/event-fields.mjs";
import { contractReadme } from "../../scripts/generate-contract-docs.mjs";
import { requestFields } from "../../scripts/request-fields.mjs";
import { agentEventSchema, eventDescriptions, promises, runRequestSchema } from "../../src/contract/index.js";

test("the README is the table: run `node core/scripts/generate-contract-docs.mjs` after a build", () => {
  const readme = readFileSync(new URL("../../src/contract/README.md", import.meta.url), "utf8");
  const events = eventRows(agentEventSchema);
  expect(readme).toBe(contractReadme(requestFields(runRequestSchema), promises, events, eventDescriptions));
});

test("every event is listed with its fields", () => {
  const rows = eventRows(agentEventSchema);
  expect(rows.map(({ type }) => type)).toEqual(agentEventSchema.options.map(({ shape }) => shape.type.value));
  expect(rows).toContainEqual({ type: "message_delta", fields: "`id`: string, `delta`: string" });
  expect(rows).toContainEqual({
    type: "interaction_request",
    fields: "`id`: string, `kind`: `user_approval` or `user_input` or `client_tool`, `payload`?: object",
  });
});
