import { DoorStage, ScriptedApi } from "@ambit/testkit";
import { expect, it } from "vitest";
import { configSchema } from "../src/config.js";
import { McpDoor } from "../src/door.js";
import { callOf } from "./support/call-of.js";

const config = configSchema.parse({ request: { harness: "gemini", permissions: { default: "allow" } } });

/** A call of `run_agent` by a page with a token of one session, and the runs that it begins. */
async function callFromPage(given: object, meta: object = {}) {
  const api = new ScriptedApi();
  const call = callOf("run_agent", given, meta);
  const response = await new DoorStage(new McpDoor(config), api).send(call, { caller: "page" });
  return { text: await response.text(), requests: api.runRequests };
}

it("takes only the prompt and the session of a page, whose token has the request", async () => {
  const { text, requests } = await callFromPage({ prompt: "hello", sessionId: "s1" });
  expect(text).toContain('"output":"kit-answer"');
  expect(requests).toEqual([
    { runId: expect.any(String), sessionId: "s1", messages: [{ role: "user", content: "hello" }] },
  ]);
});

it.each([
  [{ agent: "codex" }, {}, "arguments.agent"],
  [{ model: "large" }, {}, "arguments.model"],
  [{}, { "ambit/request": { permissions: { default: "allow" } } }, '_meta[\\"ambit/request\\"]'],
])("refuses what a page chooses beside that: %j %j", async (given, meta, path) => {
  const { text, requests } = await callFromPage({ prompt: "hello", ...given }, meta);
  expect(text).toContain(`{"path":"${path}","message":"is the token's: leave it out"}`);
  expect(requests).toEqual([]);
});
