import { isRange } from "@ambit/egress";
import { z } from "zod";

const rangeSchema = z
  .string()
  .refine(isRange, "must be a range of addresses, such as 10.0.0.0/8 or fd00::/8");

const patternSchema = z.string().min(1).max(200);

/** US dollars per million tokens. */
const dollars = z.number().nonnegative();

const priceSchema = z.strictObject({
  input: dollars,
  output: dollars,
  /** For input tokens that the provider read from its cache. Default: as `input`. */
  cached: dollars.optional(),
  /** For input tokens that the provider wrote to its cache. Default: as `input`. */
  cacheWrite: dollars.optional(),
});
export type Price = z.output<typeof priceSchema>;

const count = z.int().positive();
const milliseconds = z.int().positive().max(2_147_483_647);

export const configSchema = z.strictObject({
  /**
   * Ranges of private and other special addresses that a model's name may resolve to. Default none. An endpoint that is
   * itself a private or loopback address, or `localhost`, needs no entry; a link-local or metadata address does.
   */
  allowedRanges: z.array(rangeSchema).default([]),
  /**
   * Whether an endpoint may itself be a private or loopback address, or `localhost`, and its name one of this host's own
   * addresses. Default `auto`: `refuse` on a server with tenants, else `allow`.
   */
  privateHosts: z.enum(["allow", "refuse", "auto"]).default("auto"),
  /** Patterns (`*` for any text) of models that any run may use, besides its own. Default none. */
  models: z.array(patternSchema).default([]),
  /**
   * Prices by the model's name, or a pattern of it (`claude-haiku-*`): the longest matching pattern counts. Default
   * none.
   */
  prices: z.record(patternSchema, priceSchema).default({}),
  /** Whether streams of OpenAI Chat Completions are requested with their usage, which they otherwise don't contain. */
  requestStreamUsage: z.boolean().default(true),
  /**
   * Hosts (`name`, or `name:port`) of OpenAI-compatible servers that leave the `finish_reason` of an answer at null: one that ends
   * properly is finished there. Default none.
   */
  withoutFinishReason: z.array(z.string().min(1).max(300)).default([]),
  /**
   * Whether the provider of a run with a restricted network may search, run code, call MCP servers and fetch addresses.
   * With the network `on` it always may.
   */
  allowProviderTools: z.boolean().default(false),
  limits: z
    .strictObject({
      /** Bytes of one request. */
      requestBytes: count.default(16_777_216),
      /** Values of one request: lists, objects, keys, strings, numbers. */
      requestValues: count.default(200_000),
      /** Bytes of requests in memory at once, of all runs. */
      heldBytes: count.default(268_435_456),
      /** Simultaneous requests of one agent; further ones get 429. */
      concurrentRequests: count.default(16),
      /** To receive a request from the agent. */
      receiveMs: milliseconds.default(60_000),
      connectMs: milliseconds.default(10_000),
      /** From a request to the first byte of its response. */
      firstByteMs: milliseconds.default(600_000),
      /** Between two pieces of a response. */
      idleMs: milliseconds.default(300_000),
    })
    .prefault({}),
});
export type ModelRouteConfig = z.output<typeof configSchema>;
