import { z } from "zod";

/** The bridge's settings, as part of a backend's configuration. */
export const bridgeSchema = z.strictObject({
  /** Absolute path of a folder in the sandbox that only the bridge writes to. It is created. */
  folder: z.string().startsWith("/").default("/tmp/ambit"),
  /** Node.js (18 or newer) in the sandbox: a name on the platform's `PATH`, or a path. */
  node: z.string().min(1).default("node"),
  /** Milliseconds without any pipe after which the sandbox is given up. */
  reconnectTimeoutMs: z.int().positive().default(60_000),
  /** Milliseconds of silence after which a pipe is considered dead. */
  heartbeatTimeoutMs: z.int().positive().default(20_000),
  /** Approximate bytes through one pipe before it is replaced: platforms log them as long as the pipe's command runs. */
  pipeBytes: z
    .int()
    .positive()
    .default(32 * 1024 * 1024),
  /** Milliseconds that the sandbox's processes outlive a dead runner. */
  orphanTimeoutMs: z.int().positive().default(120_000),
  /** The first user id for processes, if the bridge runs as root; some thousands follow. */
  firstUser: z.int().min(1_000).max(2_000_000_000).default(61_000),
  /** Bytes of the runner's files that are copied into a sandbox at most; a larger agent belongs in its image. */
  copyBytes: z
    .int()
    .nonnegative()
    .default(64 * 1024 * 1024),
});
export type BridgeOptions = z.output<typeof bridgeSchema>;
