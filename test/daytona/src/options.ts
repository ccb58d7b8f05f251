import type { RequestListener } from "node:http";
import { z } from "zod";

const ipv4 = z.ipv4();

/** A host outside the sandboxes, on the loopback's own network. It exists nowhere else. */
export const worldHost = z.strictObject({
  /** Its name in the resolver, such as `api.allowed.test`. */
  name: z.string().min(1).toLowerCase(),
  /** An address of 10.99.0.0/24, except .1. Default: the next unused one. */
  address: ipv4.optional(),
  /** TCP ports to listen on. UDP to the same ports is recorded and gets the reply `pong`. */
  ports: z.array(z.int().min(1).max(65535)).min(1).default([80]),
  /**
   * Forwards every TCP connection to this port of 127.0.0.1. Its requests aren't recorded.
   */
  forwardTo: z.int().min(1).max(65535).optional(),
  /** Responds to its HTTP requests. Default: 200 and `hello from <name>`. */
  respond: z.custom<RequestListener>((value) => typeof value === "function").optional(),
});
export type WorldHost = z.input<typeof worldHost>;

export const snapshot = z.strictObject({
  /**
   * The user of commands. `root` keeps what a process needs to create users and to mount inside.
   * `daytona` (1000:1000) has no capability and no sudo.
   */
  user: z.enum(["root", "daytona"]).default("root"),
  /**
   * Whether root keeps `CAP_NET_ADMIN` and `CAP_SYS_ADMIN`, as in v0.190's containers, which are privileged unless they
   * have a GPU (`apps/runner/pkg/docker/container_configs.go`). False: what Docker leaves by default.
   */
  privileged: z.boolean().default(true),
  /** In `/etc/shells`. The daemon prefers zsh to bash, and uses `sh` without both. */
  shells: z.array(z.string().startsWith("/")).default(["/bin/sh", "/bin/bash"]),
  /** Whether all users may enter root's home, as in some images. */
  openHome: z.boolean().default(false),
  /** Folders and files of this machine in the image, read-only: source → absolute path inside. */
  binds: z.record(z.string().startsWith("/"), z.string().startsWith("/")).default({}),
  /** Variables of the image. A sandbox's `env` has priority. */
  env: z.record(z.string(), z.string()).default({}),
  /** Resources of its sandboxes: CPUs, memory in GiB, disk in GiB. */
  cpu: z.int().positive().default(1),
  memory: z.int().positive().default(1),
  disk: z.int().positive().default(3),
});
export type LoopbackSnapshot = z.input<typeof snapshot>;

export const organization = z.strictObject({
  /**
   * What happens to a sandbox's own network settings. `allowed`: applied (tier 3 and 4). `refused`: 403 (tier 1 and 2).
   * `ignored`: accepted and returned but not applied, which a plugin must detect.
   */
  networkOverride: z.enum(["allowed", "refused", "ignored"]).default("allowed"),
  /** Names of world hosts that every sandbox reaches despite its limits, including by DNS. */
  essentials: z.array(z.string().toLowerCase()).default([]),
  /** Whether the resolver also responds to sandboxes that may reach nothing else: then names are a way out. */
  openResolver: z.boolean().default(false),
  /**
   * Traffic that bypasses a sandbox's limits, as on a platform that filters only IPv4 and forwarded traffic
   * (`apps/runner/pkg/netrules`): `ipv6`, `datagrams` to port 53, and port 8080 of the `gateway`, which is the runner's
   * own API.
   */
  leaks: z.array(z.enum(["ipv6", "datagrams", "gateway"])).default([]),
  /** `ignored`: lists of names are accepted and returned but not applied. v0.190 has none. */
  domainLists: z.enum(["enforced", "ignored"]).default("enforced"),
  /**
   * Milliseconds after a start in which limits don't apply yet: v0.190 sets its rules after the container's start, in
   * parallel to the response (`apps/runner/pkg/docker/create.go`).
   */
  rulesDelayMs: z.int().min(0).default(0),
  /**
   * Whether its sandboxes get the processors before other programs of this machine, as they do on a machine of their
   * own. For measurements: a test beside them starves.
   */
  ownProcessors: z.boolean().default(false),
  /** `lost`: a snapshot of a sandbox is accepted, and never there. As in v0.190 where its registry fails. */
  snapshots: z.enum(["kept", "lost"]).default("kept"),
  /** Milliseconds that a snapshot of a sandbox takes at least. */
  snapshotMs: z.int().min(0).default(50),
  /** Whether sandboxes may have a time to live. v0.190 drops the setting. */
  timeToLive: z.boolean().default(true),
  /** Maximum resources of one sandbox: CPUs, memory in GiB, disk in GiB. More is refused with 400. */
  maxCpu: z.int().positive().default(4),
  maxMemory: z.int().positive().default(8),
  maxDisk: z.int().positive().default(10),
});

export const loopbackOptions = z.strictObject({
  apiKey: z.string().min(1).default("loopback-key"),
  organization: organization.prefault({}),
  /** By name. `daytona-small` (user `daytona`) always exists: the default for a create without snapshot or image. */
  snapshots: z.record(z.string(), snapshot).default({}),
  /** User and content of sandboxes from an image. Images aren't pulled: only the name is kept. */
  image: snapshot.prefault({}),
  world: z.array(worldHost).default([]),
  /**
   * A program of this machine that replaces the loopback's own daemon in every sandbox, such as Daytona's, built from its
   * source. It is started without arguments and handles all of `/toolbox`. Default: `AMBIT_DAYTONA_DAEMON`, or none.
   */
  daemon: z
    .string()
    .startsWith("/")
    .optional()
    .prefault(() => process.env.AMBIT_DAYTONA_DAEMON || undefined),
  /** Minimum milliseconds from `creating` to `started`. */
  startDelayMs: z.int().min(0).default(50),
  /**
   * Maximum milliseconds for which the response to a start, or to a create from a snapshot, waits until the sandbox is
   * `started`. A create from an image gets its response at once.
   */
  holdMs: z.int().min(0).default(30_000),
  /** Milliseconds in a minute of `autoStopInterval`, `autoDeleteInterval` and `ttlMinutes`. */
  minuteMs: z.int().positive().default(60_000),
  /** Milliseconds after creation after which a sandbox can be deleted even while its state changes. */
  stuckMs: z.int().min(0).default(1_500),
  /** Milliseconds between SIGTERM and SIGKILL when a session is deleted. Daytona's are 5 s. */
  sessionGraceMs: z.int().min(0).default(5_000),
});
export type LoopbackOptions = z.input<typeof loopbackOptions>;
export type ResolvedOptions = z.output<typeof loopbackOptions>;
export type ResolvedSnapshot = z.output<typeof snapshot>;
export type ResolvedWorldHost = z.output<typeof worldHost>;
