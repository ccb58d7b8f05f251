import { messageJsonLimits } from "@ambit/core/contract";
import { isRange } from "@ambit/egress";
import { z } from "zod";

const rangeSchema = z
  .string()
  .refine(isRange, "must be a range of addresses, such as 10.0.0.0/8 or fd00::/8");

export const configSchema = z.strictObject({
  /**
   * Whether a callback may lead to a private or loopback address, or to one of this host's, when the run's network isn't
   * restricted. Default `auto`: `refuse` on a server with tenants, else `allow`, since platforms are usually neighbours.
   * Link-local and metadata addresses are always refused.
   */
  privateHosts: z.enum(["allow", "refuse", "auto"]).default("auto"),
  /**
   * Ranges that a callback may lead to, also under an allowlist of names. Default none. Private, link-local and other
   * special addresses are opened by a range inside their block, a metadata service by its own address alone.
   * They count for callbacks only: nothing in the sandbox gets nearer to them.
   */
  allowedRanges: z.array(rangeSchema).default([]),
  /** Bytes of one answer. Default 4 MB; the model gets 100,000 of them. */
  maxAnswerBytes: z.int().min(1_024).default(4_000_000),
  /** Values of one answer: lists, objects, keys, strings, numbers. Default 100,000. */
  maxAnswerValues: z.int().min(100).default(messageJsonLimits.maxValues),
});

export type CallbackConfig = z.output<typeof configSchema>;
