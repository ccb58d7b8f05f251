import { expect, it } from "vitest";
import { finishReason, providerName } from "../src/trace/attributes.js";

it.each([
  ["google", "gcp.gemini"],
  ["Gemini", "gcp.gemini"],
  ["bedrock", "aws.bedrock"],
  ["anthropic", "anthropic"],
  ["our-own", "our-own"],
  [undefined, undefined],
])("the provider %s is %s by the conventions", (given, expected) => {
  expect(providerName(given)).toBe(expected);
});

it.each([
  [{ ok: true, stopReason: "end_turn" }, "stop"],
  [{ ok: true, stopReason: "max_tokens" }, "length"],
  [{ ok: true, stopReason: "refusal" }, "content_filter"],
  [{ ok: true, stopReason: "paused" }, "tool_call"],
  [{ ok: true, stopReason: "cancelled" }, "cancelled"],
  [{ ok: false }, "error"],
] as const)("a result of %o finished by %s", (result, expected) => {
  expect(finishReason(result)).toBe(expected);
});
