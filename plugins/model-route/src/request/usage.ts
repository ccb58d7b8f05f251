import type { ModelUsage } from "@ambit/core/plugin";
import type { Price } from "../config.js";
import { bytesPerToken, costOf } from "../models.js";
import { nothingCounted } from "../protocols/protocol.js";
import type { ReadBody } from "./read-body.js";

/** Where each API has its limit of output tokens. */
const limits: readonly (readonly string[])[] = [
  ["max_tokens"],
  ["max_completion_tokens"],
  ["max_output_tokens"],
  ["generationConfig", "maxOutputTokens"],
  ["generation_config", "max_output_tokens"],
  ["inferenceConfig", "maxTokens"],
];
/** Where each API has the number of answers to one request. */
const answers: readonly (readonly string[])[] = [["n"], ["generationConfig", "candidateCount"]];

/** What a request may use at most: infinitely much output if it states no limit. Pure. */
export function maxUsage(model: string, body: ReadBody, price: Price | undefined): ModelUsage {
  const stated = limits.flatMap((path) => countIn(body.value, path) ?? []);
  const times = answers.flatMap((path) => countIn(body.value, path) ?? []);
  const counted = {
    ...nothingCounted,
    input: Math.ceil(body.size / bytesPerToken),
    output: Math.max(1, ...times) * (stated.length === 0 ? Number.POSITIVE_INFINITY : Math.max(...stated)),
  };
  const { input, cached, output } = counted;
  return { model, input, cached, output, ...(price === undefined ? {} : { cost: costOf(counted, price) }) };
}

function countIn(value: unknown, [key, ...rest]: readonly string[]): number | undefined {
  if (key === undefined) return typeof value === "number" && value > 0 ? value : undefined;
  if (typeof value !== "object" || value === null) return undefined;
  return countIn(Object.entries(value).find(([name]) => name === key)?.[1], rest);
}

/**
 * The body of a streamed Chat Completions request with the stream's usage enabled: otherwise the provider sends none.
 * Other members of `stream_options` are removed. Pure.
 */
export function askingForUsage({ value, streamed }: ReadBody): ReadBody["value"] {
  if (!streamed) return value;
  const { stream_options: options } = value;
  const asks =
    typeof options === "object" &&
    options !== null &&
    "include_usage" in options &&
    options.include_usage === true;
  return asks ? value : { ...value, stream_options: { include_usage: true } };
}
