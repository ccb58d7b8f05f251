import { messageJsonLimits } from "@ambit/core/contract";
import { isRange } from "@ambit/egress";
import { z } from "zod";

export const configSchema = z.strictObject({
  /**
   * Ranges that a server's address may be in although they are private, loopback or otherwise special, whatever the
   * run's boundary allows. Default none: a request's MCP server must then be on the public internet.
   */
  allowedRanges: z
    .array(z.string().refine(isRange, "must be a range of addresses, such as 10.0.0.0/8 or fd00::/8"))
    .default([]),
  /** Whether a loopback server may be used without TLS; its address must be in `allowedRanges` as well. */
  loopbackWithoutTls: z.boolean().default(false),
  /** Bytes of one message from a server. Default 8 MiB. */
  maxMessageBytes: z
    .int()
    .positive()
    .default(8 * 1024 * 1024),
  /** Values of one message from a server: lists, objects, keys, strings, numbers. Default 100,000. */
  maxMessageValues: z.int().min(100).default(messageJsonLimits.maxValues),
  /** `PATH` of a stdio server, as seen inside the sandbox. The folder of the runner's own node is added last. */
  path: z.string().min(1).default("/usr/local/bin:/usr/bin:/bin"),
});
export type McpClientConfig = z.output<typeof configSchema>;
