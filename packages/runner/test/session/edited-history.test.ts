import { says } from "@ambit/fakes/harness";
import { describe, expect, test } from "vitest";
import { createWorld } from "../fakes/world.js";

const sessionId = "s";
const user = (content: string) => ({ role: "user", content });
const assistant = (content: string) => ({ role: "assistant", content });
const image = { type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" };

/** Two turns of one session, and what the second one's agent remembered. */
async function secondTurn(first: readonly object[], second: readonly object[]) {
  const world = await createWorld({ script: says("ok") });
  await world.run({ sessionId, messages: first });
  const { result } = await world.run({ sessionId, messages: second });
  const prompt = world.harness.prompts
    .at(-1)
    ?.map(({ text }) => text)
    .join("");
  const resumed = world.harness.starts.map(({ resume }) => resume);
  await world.runner.drain(0);
  return { history: result.receipt?.session.history, prompt, resumed, opened: world.sandbox.opened };
}

const recorded = [user("one"), assistant("ok"), user("two")];

describe("a warm session continues", () => {
  test.each([
    ["with the whole conversation", [...recorded, assistant("ok"), user("three")]],
    [
      "whatever the caller makes of the agent's words",
      [user("one"), assistant("okay!"), user("two"), assistant(""), user("three")],
    ],
    ["with its end alone", [user("two"), assistant("ok"), user("three")]],
    ["with the new words alone", [user("three")]],
    [
      "with words in blocks",
      [{ role: "user", content: [{ type: "text", text: "two" }] }, assistant("ok"), user("three")],
    ],
    [
      "with an image, which has no words",
      [...recorded, assistant("ok"), { role: "user", content: [{ type: "text", text: "three" }, image] }],
    ],
  ])("%s", async (_what, messages) => {
    const { history, resumed, prompt } = await secondTurn(recorded, messages);
    expect(history).toBe("warm");
    expect(resumed).toEqual([undefined]);
    expect(prompt).toContain("three");
    expect(prompt).not.toContain("one");
  });

  test("over turns with only new messages, then with the whole history", async () => {
    await using world = await createWorld({ script: says("ok") });
    for (const words of ["one", "two", "three"]) await world.run({ sessionId, messages: [user(words)] });
    const messages = ["one", "two", "three", "four"]
      .flatMap((words) => [user(words), assistant("ok")])
      .slice(0, -1);
    expect((await world.run({ sessionId, messages })).result.receipt?.session.history).toBe("warm");
    expect(world.harness.starts).toHaveLength(1);
  });
});

describe("an edited conversation starts a new agent without the old conversation", () => {
  test.each([
    ["earlier words are others", [user("uno"), assistant("ok"), user("two"), assistant("ok"), user("three")]],
    ["the last turn was taken back", [user("one"), assistant("ok"), user("three")]],
    ["the last turn is asked for again", recorded],
    ["there is more of it than there was", [user("zero"), ...recorded, assistant("ok"), user("three")]],
  ])("%s", async (_what, messages) => {
    const { history, resumed, prompt, opened } = await secondTurn(recorded, messages);
    expect(history).toBe("replayed");
    expect(resumed).toEqual([undefined, undefined]);
    expect(prompt).toContain("The conversation so far:");
    expect(opened).toBe(1);
  });

  test("and the next turn continues with it", async () => {
    await using world = await createWorld({ script: says("ok") });
    await world.run({ sessionId, messages: recorded });
    const edited = [user("uno"), assistant("ok"), user("two")];
    await world.run({ sessionId, messages: edited });
    const { result } = await world.run({ sessionId, messages: [...edited, assistant("ok"), user("three")] });
    expect(result.receipt?.session.history).toBe("warm");
  });
});
