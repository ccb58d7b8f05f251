import { bridgeSchema } from "@ambit/bridge";
import { secret } from "@ambit/core/contract";
import { z } from "zod";

/** `host:port`. 443 is tried with a TLS handshake, 80 with a request, any other port with a connection. */
const destination = z
  .string()
  .regex(
    /^([^\s:/[\]]+|\[[\da-fA-F:]+\]):\d{1,5}$/,
    'must be "host:port", such as "example.com:443" or "[2001:db8::1]:443"',
  )
  .transform((text) => {
    const end = text.lastIndexOf(":");
    const host = text.slice(0, end).replace(/^\[(.*)\]$/, "$1");
    return { host: host.toLowerCase(), port: Number(text.slice(end + 1)) };
  })
  .pipe(z.object({ host: z.string(), port: z.int().min(1).max(65_535) }));

const word = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,30}$/, "must be letters, digits, - or _, at most 31");

const canarySchema = z.strictObject({
  /** A publicly reachable IPv4 address and port: if it alone is listed, it must respond, and nothing else may. */
  address: destination.prefault("1.1.1.1:443"),
  /** A publicly reachable name and port (443 or 80): if it alone is listed, it must respond, and nothing else may. */
  name: destination.prefault("example.com:443"),
  /**
   * Further targets that must never respond in a limited sandbox. Add what a leak would use: a code host, a registry.
   */
  forbidden: z.array(destination).min(1).prefault(["github.com:443", "9.9.9.9:443"]),
  /** A publicly reachable IPv6 address and port: Daytona's rules are for IPv4, so it must never respond. */
  address6: destination.prefault("[2606:4700:4700::1111]:443"),
  /** TCP ports that are tried on the sandbox's own gateway: Daytona's rules apply only to forwarded traffic. */
  gatewayPorts: z
    .array(z.int().min(1).max(65_535))
    .max(20)
    .default([22, 80, 443, 2_375, 3_000, 3_003, 8_080]),
  /** Milliseconds until limits must apply after a sandbox has started: Daytona sets its rules afterwards. */
  settleMs: z.int().min(0).max(60_000).default(5_000),
  /** Milliseconds for one attempt. Each open takes this much longer at most for its attempts. */
  attemptMs: z.int().min(100).max(60_000).default(3_000),
  /** Hours that a canary's findings are valid, also after a restart. */
  cacheHours: z.number().positive().max(168).default(6),
  /** Minutes that they are valid if the canary couldn't test everything. */
  retryMinutes: z.number().positive().default(10),
});

/** Settings of a deployer for Daytona. Every default is here. */
export const configSchema = z
  .strictObject({
    /** Default: the variable that `apiKeyVariable` names, read when it is first needed. */
    apiKey: secret(z.string().min(1)).optional(),
    /** Variable of the runner's environment with the key. */
    apiKeyVariable: z.string().min(1).default("DAYTONA_API_KEY"),
    /** Of API v0. */
    apiUrl: secret(z.url({ protocol: /^https?$/ }), "url").default("https://app.daytona.io/api"),
    /** The region. */
    target: z.string().min(1).default("us"),
    /** Snapshot that sandboxes are made from. Default: the organisation's. It needs Node.js 18. */
    snapshot: z.string().min(1).optional(),
    /** An OCI image instead of a snapshot: only then can a run's memory, processors and disk be limited. */
    image: z.string().min(1).optional(),
    /** The maximum that the organisation allows one sandbox: cores, GiB, GiB. */
    maximum: z
      .strictObject({
        cpus: z.int().positive().default(4),
        memoryGib: z.int().positive().default(8),
        diskGib: z.int().positive().default(10),
      })
      .prefault({}),
    /** `allow`: `*.example.com` is passed on · `refuse`: it is a gap, for platforms that also allow example.com. */
    wildcards: z.enum(["allow", "refuse"]).default("allow"),
    /** Prefix of the name of every sandbox and secret. */
    namePrefix: word.default("ambit"),
    /** Runners with the same value remove each other's leftovers. */
    deployment: word.default("ambit"),
    /** Minutes without activity after which the platform stops and deletes a sandbox. An open one is kept active. */
    autoStopMinutes: z.int().min(3).default(15),
    /** Minutes after which the platform deletes a sandbox in any case. */
    ttlMinutes: z.int().min(5).default(1_440),
    /** Time limit for the start of a sandbox, in milliseconds. It includes building an image. */
    createTimeoutMs: z.int().min(1_000).default(120_000),
    /** Time limit for one request to the platform, in milliseconds. */
    requestTimeoutMs: z.int().min(1_000).default(60_000),
    /**
     * Minutes that the sandbox of a dead runner of this host is kept for another runner that takes its session over.
     */
    takeoverMinutes: z.number().positive().default(10),
    /** Seconds between two checks of an open sandbox's state. */
    watchSeconds: z.int().min(1).default(20),
    /** Minutes between two searches for leftovers of dead runners. */
    reapMinutes: z.number().positive().default(10),
    /**
     * Absolute path of a folder for findings, and for files that show which runners are alive. Default:
     * `/var/lib/ambit/daytona` as root, else `$XDG_STATE_HOME/ambit/daytona` or `~/.local/state/ambit/daytona`.
     */
    dataFolder: z.string().startsWith("/", "must be an absolute path").optional(),
    /**
     * Prepared environments that the organisation keeps as snapshots, so that sandboxes begin with them without a copy. `max`: of
     * this deployment, 0 for none. `maxAgeDays`: older ones are removed when one is made, and by
     * each search for leftovers; a server uses none after its `workspace.rebuildAfterMs`. `timeoutMs`: milliseconds for the platform to make one.
     */
    layers: z
      .strictObject({
        max: z.int().min(0).max(1_000).default(10),
        maxAgeDays: z.number().positive().max(3_650).default(8),
        timeoutMs: z.int().min(1_000).default(300_000),
      })
      .prefault({}),
    canary: canarySchema.prefault({}),
    bridge: bridgeSchema.prefault({}),
  })
  .refine(({ snapshot, image }) => snapshot === undefined || image === undefined, {
    message: "must name a snapshot or an image, not both",
    path: ["image"],
  });

export type DaytonaConfig = z.output<typeof configSchema>;
export type CanaryConfig = DaytonaConfig["canary"];
export type CanaryDestination = z.output<typeof destination>;
