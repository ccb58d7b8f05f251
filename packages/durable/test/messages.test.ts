import { expect, test } from "vitest";
import { aboutQuestion } from "../src/webhooks.js";

const run = {
  id: "r",
  session: "s",
  project: undefined,
  webhook: { target: "t", host: "h.example", events: ["interaction.requested" as const] },
};
const changes = (length: number) => [{ path: "/w/a", oldText: "", newText: "x".repeat(length) }];

test.each([
  ["a small change", { toolName: "Edit", changes: changes(10) }, { payload: { changes: changes(10) } }],
  [
    "a large change, which is left out",
    { toolName: "Edit", input: { path: "/w/a" }, changes: changes(20_000) },
    { truncated: true, payload: { toolName: "Edit", input: { path: "/w/a" } } },
  ],
  [
    "large arguments",
    { toolName: "Edit", input: "x".repeat(20_000), changes: changes(10) },
    { truncated: true },
  ],
])("a question about %s", (_what, payload, data) => {
  const [message] = aboutQuestion(run, {
    type: "interaction_request",
    id: "i",
    kind: "user_approval",
    payload,
  });
  const sent = JSON.parse(message?.body ?? "{}").data;
  expect(sent).toMatchObject(data);
  if ("truncated" in data) expect(sent.payload).toEqual("payload" in data ? data.payload : undefined);
});
