import { says } from "@ambit/fakes/harness";
import { describe, expect, test } from "vitest";
import { contractSettingsSchema } from "../../src/parse/parse.js";
import { createWorld } from "../fakes/world.js";

const sessionId = "s";
const user = (content: string) => ({ role: "user", content });
const assistant = { role: "assistant", content: "ok" };

/** How the session's second turn begins. */
async function history(second: readonly object[], wholeHistory: boolean) {
  const contract = contractSettingsSchema.parse({ wholeHistory });
  const world = await createWorld({ script: says("ok"), rules: { contract } });
  await world.run({ sessionId, messages: [user("one")] });
  const { result } = await world.run({ sessionId, messages: second });
  await world.runner.drain(0);
  return result.receipt?.session.history;
}

describe("callers that send the whole conversation", () => {
  test.each([
    ["the next message", [user("one"), assistant, user("two")], "warm"],
    ["another first message", [user("another")], "new"],
    ["another first message, with an answer", [user("another"), assistant, user("two")], "replayed"],
    ["less than the session has", [user("two")], "new"],
  ])("%s", async (_what, messages, expected) => {
    expect(await history(messages, true)).toBe(expected);
  });

  test("without the setting, a first message alone is taken for the next one", async () => {
    expect(await history([user("another")], false)).toBe("warm");
  });
});
