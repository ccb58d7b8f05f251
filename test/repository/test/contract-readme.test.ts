import { agentEventSchema } from "@ambit/core/contract";
import { expect, test } from "vitest";
import { pages } from "../../../scripts/docs/contract.mjs";
import { eventRows } from "../../../scripts/docs/event-fields.mjs";

test("the contract's README is the table: run `node scripts/docs/contract.mjs` after a build", async () => {
  const { current, wanted } = await pages();
  expect(current).toBe(wanted);
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
