import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import { readTextInput, textInputOf } from "../../../src/driver/calls/text-input.js";
import { inputInWords } from "../../../src/profiles/tool-names.js";
import { endTurn, fakeAgent } from "../../support/fake-agent.js";
import { eventsOf, turnOf } from "../../support/runs.js";

const input = { values: Array.from({ length: 5_000 }, (_, at) => `${"x".repeat(100)}${at}`) };
const contentOf = (text: string) => [{ type: "content", content: { type: "text", text } }];
const messageOf = (content: readonly unknown[], more: object = {}) => ({
  params: { update: { sessionUpdate: "tool_call", toolCallId: "a", content, ...more } },
});

it("an input that is shown as a long text is read in turns of the event loop", async () => {
  const content = contentOf(JSON.stringify(input));
  // In one step only a short one is.
  expect(textInputOf(content)).toBeUndefined();
  let turns = 0;
  let isRead = false;
  const reading = readTextInput(messageOf(content)).then(() => {
    isRead = true;
  });
  while (!isRead) {
    await nextTurn();
    turns += 1;
  }
  await reading;
  expect(turns).toBeGreaterThan(3);
  expect(textInputOf(content)).toEqual(input);
});

it.each([
  ["a result", JSON.stringify(input), { status: "completed" }],
  ["what isn't JSON", `{${"x".repeat(100_000)}`, {}],
  ["what begins with too much white space", `${" ".repeat(300)}${JSON.stringify(input)}`, {}],
])("%s is no input", async (_what, text, more) => {
  const content = contentOf(text);
  await readTextInput(messageOf(content, more));
  expect(textInputOf(content)).toBeUndefined();
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
