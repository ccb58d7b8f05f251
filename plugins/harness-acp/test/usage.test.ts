import { describe, expect, it } from "vitest";
import { costOf, turnUsage } from "../src/driver/usage.js";

describe("usage", () => {
  it.each([
    {
      what: "PromptResponse.usage",
      response: { usage: { inputTokens: 3, outputTokens: 4, totalTokens: 9 } },
      usage: { input: 3, output: 4, total: 9 },
    },
    {
      what: "_meta.quota (Gemini)",
      response: { _meta: { quota: { token_count: { input_tokens: 3, output_tokens: 4 } } } },
      usage: { input: 3, output: 4, total: 7 },
    },
    { what: "null (a cancelled turn)", response: { usage: null }, usage: undefined },
    { what: "nothing", response: {}, usage: undefined },
    { what: "nonsense", response: { usage: { inputTokens: "many" } }, usage: undefined },
  ])("$what", ({ response, usage }) => {
    expect(turnUsage(response, undefined, 0)).toEqual(usage);
  });

  it("gives this turn's cost, of a figure that grows with the conversation", () => {
    expect(turnUsage({}, 0.5, 0.2)).toEqual({ cost: 0.3 });
    expect(costOf({ cost: { amount: 0.5, currency: "USD" } })).toBe(0.5);
    expect(costOf({ cost: { amount: 0.5, currency: "EUR" } })).toBeUndefined();
  });
});
