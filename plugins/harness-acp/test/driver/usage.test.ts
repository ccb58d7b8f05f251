import { describe, expect, it } from "vitest";
import { costOf, tokensIn, turnUsage } from "../../src/driver/answers.js";

describe("usage", () => {
  it.each([
    {
      what: "PromptResponse.usage",
      response: { usage: { inputTokens: 3, outputTokens: 4, totalTokens: 7 } },
      usage: { input: 3, output: 4, total: 7 },
    },
    {
      // Claude Code, Codex, OpenCode.
      what: "cached tokens in addition to the input, as in ACP",
      response: {
        usage: {
          inputTokens: 2000,
          outputTokens: 100,
          totalTokens: 2600,
          cachedReadTokens: 400,
          cachedWriteTokens: 100,
        },
      },
      usage: { input: 2500, cached: 400, cacheWritten: 100, output: 100, total: 2600 },
    },
    {
      what: "cached tokens included in the input",
      response: { usage: { inputTokens: 10, outputTokens: 2, totalTokens: 12, cachedReadTokens: 4 } },
      usage: { input: 10, cached: 4, output: 2, total: 12 },
    },
    {
      // Codex.
      what: "thoughts included in the output",
      response: {
        usage: {
          inputTokens: 10,
          outputTokens: 8,
          totalTokens: 22,
          cachedReadTokens: 4,
          thoughtTokens: 5,
        },
      },
      usage: { input: 14, cached: 4, output: 8, reasoning: 5, total: 22 },
    },
    {
      what: "thoughts in addition to the output, as in ACP",
      response: {
        usage: {
          inputTokens: 10,
          outputTokens: 8,
          totalTokens: 27,
          cachedReadTokens: 4,
          thoughtTokens: 5,
        },
      },
      usage: { input: 14, cached: 4, output: 13, reasoning: 5, total: 27 },
    },
    {
      what: "no total",
      response: { usage: { inputTokens: 10, outputTokens: 2, cachedReadTokens: 4 } },
      usage: { input: 14, cached: 4, output: 2, total: 16 },
    },
    {
      what: "_meta.quota (Gemini)",
      response: { _meta: { quota: { token_count: { input_tokens: 3, output_tokens: 4 } } } },
      usage: { input: 3, output: 4, total: 7 },
    },
    {
      what: "zeros in all fields (a cancelled turn)",
      response: { usage: { inputTokens: 0, outputTokens: 0, totalTokens: 0, cachedReadTokens: 0 } },
      usage: undefined,
    },
    {
      what: "zeros in _meta.quota",
      response: { _meta: { quota: { token_count: { input_tokens: 0, output_tokens: 0 } } } },
      usage: undefined,
    },
    {
      what: "a zero in one field",
      response: { usage: { inputTokens: 0, outputTokens: 4, totalTokens: 0, cachedReadTokens: 3 } },
      usage: { output: 4 },
    },
    { what: "null (a cancelled turn)", response: { usage: null }, usage: undefined },
    { what: "nothing", response: {}, usage: undefined },
    { what: "nonsense", response: { usage: { inputTokens: "many" } }, usage: undefined },
  ])("$what", ({ response, usage }) => {
    expect(tokensIn(response)).toEqual(usage);
  });

  it("computes this turn's cost from the conversation's total", () => {
    expect(turnUsage(undefined, 0.5, 0.2)).toEqual({ cost: 0.3 });
    // An agent that doesn't know its model's price reports 0.
    expect(turnUsage(undefined, 0, 0)).toBeUndefined();
    expect(turnUsage({ output: 3 }, 0.2, 0.2)).toEqual({ output: 3 });
    expect(costOf({ cost: { amount: 0.5, currency: "USD" } })).toBe(0.5);
    expect(costOf({ cost: { amount: 0.5, currency: "EUR" } })).toBeUndefined();
  });
});
