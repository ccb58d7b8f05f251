import { done } from "@ambit/fakes/harness";
import { expect, test } from "vitest";
import { createWorld } from "../fakes/world.js";

const secret = "sk-of-the-large-events";
const request = {
  toolCallback: { endpoint: "https://tools.example/call", authorization: `Bearer ${secret}` },
};

test("a large event arrives whole, without the credential that is in it", async () => {
  const input = { rows: Array.from({ length: 20_000 }, (_, at) => ({ at, text: `a ${secret}` })) };
  const text = `x${"😀".repeat(200_000)}${secret}`;
  const world = await createWorld({
    script: async function* () {
      yield { type: "tool_call", id: "a", name: "Query", input };
      yield { type: "tool_result", id: "a", output: input };
      yield { type: "message_start", id: "m" };
      yield { type: "message_delta", id: "m", delta: text };
      yield { type: "message_end", id: "m" };
      yield done;
    },
  });
  const { events } = await world.tell(await world.admit(request));
  expect(events.find(({ type }) => type === "tool_call")).toMatchObject({
    input: { rows: expect.arrayContaining([{ at: 19_999, text: "a [redacted]" }]) },
  });
  const deltas = events.flatMap((event) => (event.type === "message_delta" ? [event.delta] : []));
  expect(deltas.join("")).toBe(text.replace(secret, "[redacted]"));
});
