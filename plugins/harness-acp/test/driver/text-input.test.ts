import { expect, it } from "vitest";
import { textInputOf } from "../../src/driver/calls.js";
import { inputInWords } from "../../src/profiles/tool-names.js";
import { endTurn, fakeAgent } from "../support/fake-agent.js";
import { eventsOf, turnOf } from "../support/runs.js";

const input = { values: Array.from({ length: 5_000 }, (_, at) => `${"x".repeat(100)}${at}`) };
const contentOf = (text: string) => [{ type: "content", content: { type: "text", text } }];

it.each([
  ["what isn't JSON", `{${"x".repeat(100_000)}`],
  ["what begins with too much white space", `${" ".repeat(300)}${JSON.stringify(input)}`],
])("%s is no input", (_what, text) => {
  expect(textInputOf(contentOf(text))).toBeUndefined();
});

it.each([
  ["long", input],
  ["short", { a: 1 }],
])("a profile has the input of a %s text", async (_what, shown) => {
  const fake = fakeAgent({
    profile: {
      identify: (call) => ({ name: "search", server: "ambit", input: inputInWords(call) }),
    },
    onPrompt: async (turn) => {
      const call = { toolCallId: "a", title: "search" };
      await turn.update({ sessionUpdate: "tool_call", ...call, content: contentOf(JSON.stringify(shown)) });
      await turn.update({ sessionUpdate: "tool_call_update", ...call, status: "completed" });
      return endTurn;
    },
  });
  const { agent, scope } = await fake.start();
  const events = await eventsOf(agent, turnOf());
  expect(events.find(({ type }) => type === "tool_call")).toMatchObject({ name: "search", input: shown });
  await scope.close();
});
