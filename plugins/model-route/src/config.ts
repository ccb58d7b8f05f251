import { isRange } from "@ambit/egress";
import { z } from "zod";

const rangeSchema = z
  .string()
  .refine(isRange, "must be a range of addresses, such as 10.0.0.0/8 or fd00::/8");

const patternSchema = z.string().min(1).max(200);

/** US dollars for a million tokens. */
const dollars = z.number().nonnegative();

const priceSchema = z.strictObject({
  input: dollars,
  output: dollars,
  /** For input tokens that the provider had in its cache. Default: as `input`. */
  cached: dollars.optional(),
  /** For input tokens that the provider puts into its cache. Default: as `input`. */
  cacheWrite: dollars.optional(),
});
export type Price = z.output<typeof priceSchema>;

const count = z.int().positive();
const milliseconds = z.int().positive().max(2_147_483_647);

export const configSchema = z.strictObject({
  /**
   * Ranges of private and other special addresses that a model's name may lead to. Default none. An endpoint that is a
   * private or loopback address itself, or `localhost`, needs no entry; a link-local or metadata address does.
   */
  allowedRanges: z.array(rangeSchema).default([]),
  /** Patterns (`*` for any text) of models that any run may ask for, beside its own. Default none. */
  models: z.array(patternSchema).default([]),
  /** Prices by the model's name, or a pattern of it (`claude-haiku-*`): the longest that fits counts. Default none. */
  prices: z.record(patternSchema, priceSchema).default({}),
  /** Whether streams of OpenAI Chat Completions are asked for their usage, which they otherwise don't tell. */
  requestStreamUsage: z.boolean().default(true),
  /**
   * Whether a run with a restricted network may have its provider search, run code, call MCP servers and fetch addresses.
   * Where the network is `on` it may anyway.
   */
  allowProviderTools: z.boolean().default(false),
  limits: z
    .strictObject({
      /** Bytes of one request. */
      requestBytes: count.default(33_554_432),
      /** Bytes of requests that are held at once, of all runs. */
      heldBytes: count.default(268_435_456),
      /** Requests of one agent that may be under way at once; one more gets 429. */
      concurrentRequests: count.default(16),
      /** To receive a request from the agent. */
      receiveMs: milliseconds.default(60_000),
      connectMs: milliseconds.default(10_000),
      /** From a request to the first byte of its answer. */
      firstByteMs: milliseconds.default(600_000),
      /** Between two pieces of an answer. */
      idleMs: milliseconds.default(300_000),
    })
    .prefault({}),
});
export type ModelRouteConfig = z.output<typeof configSchema>;
