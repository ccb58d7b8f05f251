import type { RequestListener } from "node:http";
import { z } from "zod";

const ipv4 = z.ipv4();

/** A host outside the sandboxes, on the loopback's own network. It exists nowhere else. */
export const worldHost = z.strictObject({
  /** The name that its resolver answers, such as `api.allowed.test`. */
  name: z.string().min(1).toLowerCase(),
  /** An address of 10.99.0.0/24, .1 excluded. Default: the next free one. */
  address: ipv4.optional(),
  /** TCP ports it listens on. The same ports receive UDP, which is recorded and answered with `pong`. */
  ports: z.array(z.int().min(1).max(65535)).min(1).default([80]),
  /**
   * Carries every TCP connection, as bytes, to this port of this machine's 127.0.0.1. Its requests aren't recorded
   * then.
   */
  forwardTo: z.int().min(1).max(65535).optional(),
  /** Answers its HTTP requests. Default: 200 and `hello from <name>`. */
  respond: z.custom<RequestListener>((value) => typeof value === "function").optional(),
});
export type WorldHost = z.input<typeof worldHost>;

export const snapshot = z.strictObject({
  /**
   * Whom commands run as. `root` keeps what a process needs to make users of its own and to mount inside.
   * `daytona` (1000:1000) has no capability and no sudo.
   */
  user: z.enum(["root", "daytona"]).default("root"),
  /**
   * Whether root keeps `CAP_NET_ADMIN` and `CAP_SYS_ADMIN`, as in v0.190's containers, which are privileged unless they
   * have a GPU (`apps/runner/pkg/docker/container_configs.go`). False: what Docker leaves by default.
   */
  privileged: z.boolean().default(true),
  /** Of `/etc/shells`. The daemon takes zsh before bash, and `sh` where there is neither. */
  shells: z.array(z.string().startsWith("/")).default(["/bin/sh", "/bin/bash"]),
  /** Whether all users may enter root's home, as in some images. */
  openHome: z.boolean().default(false),
  /** Folders and files of this machine that are in the image, read-only: source → absolute path inside. */
  binds: z.record(z.string().startsWith("/"), z.string().startsWith("/")).default({}),
  /** Variables of the image. A sandbox's own `env` wins. */
  env: z.record(z.string(), z.string()).default({}),
  /** What its sandboxes get: CPUs, memory in GiB, disk in GiB. */
  cpu: z.int().positive().default(1),
  memory: z.int().positive().default(1),
  disk: z.int().positive().default(3),
});
export type LoopbackSnapshot = z.input<typeof snapshot>;

export const organization = z.strictObject({
  /**
   * What happens to a sandbox's own network settings. `allowed`: applied (tier 3 and 4). `refused`: 403 (tier 1
   * and 2). `ignored`: taken, answered and not applied, which a plugin has to find out for itself.
   */
  networkOverride: z.enum(["allowed", "refused", "ignored"]).default("allowed"),
  /** Names of world hosts that every sandbox reaches in spite of its limits, DNS included. */
  essentials: z.array(z.string().toLowerCase()).default([]),
  /** The resolver answers sandboxes that may reach nothing else, too: names are a way out. */
  openResolver: z.boolean().default(false),
  /**
   * What gets past a sandbox's limits, as on a platform that filters IPv4 and what it forwards only
   * (`apps/runner/pkg/netrules`): `ipv6`, `datagrams` to port 53, and port 8080 of the `gateway`, where a runner's own
   * API is.
   */
  leaks: z.array(z.enum(["ipv6", "datagrams", "gateway"])).default([]),
  /** `ignored`: lists of names are taken, answered and not applied. v0.190 has none. */
  domainLists: z.enum(["enforced", "ignored"]).default("enforced"),
  /**
   * Milliseconds after a start during which limits don't hold yet: v0.190 sets its rules after the container has
   * started, beside the answer (`apps/runner/pkg/docker/create.go`).
   */
  rulesDelayMs: z.int().min(0).default(0),
  /** Whether sandboxes may have a time to live. v0.190 knows none: what is asked for is dropped. */
  timeToLive: z.boolean().default(true),
  /** Most that one sandbox may have: CPUs, memory in GiB, disk in GiB. More is refused with 400. */
  maxCpu: z.int().positive().default(4),
  maxMemory: z.int().positive().default(8),
  maxDisk: z.int().positive().default(10),
});

export const loopbackOptions = z.strictObject({
  apiKey: z.string().min(1).default("loopback-key"),
  organization: organization.prefault({}),
  /** By name. `daytona-small` (user `daytona`), the default of a create without snapshot or image, is always there. */
  snapshots: z.record(z.string(), snapshot).default({}),
  /** What a sandbox made from an image runs as and contains: an image isn't pulled, only its name is kept. */
  image: snapshot.prefault({}),
  world: z.array(worldHost).default([]),
  /**
   * A program of this machine that replaces the loopback's own daemon in every sandbox: Daytona's, built
   * from its source. It is started without arguments, and all of `/toolbox` is its own. Default: what
   * `AMBIT_DAYTONA_DAEMON` names, or none.
   */
  daemon: z
    .string()
    .startsWith("/")
    .optional()
    .prefault(() => process.env.AMBIT_DAYTONA_DAEMON || undefined),
  /** From `creating` to `started`, at least, in milliseconds. Longer where the container takes longer. */
  startDelayMs: z.int().min(0).default(50),
  /**
   * How long a create from a snapshot, and a start, are held until the sandbox is `started`, in milliseconds.
   * A create from an image is answered at once.
   */
  holdMs: z.int().min(0).default(30_000),
  /** What `autoStopInterval`, `autoDeleteInterval` and `ttlMinutes` call a minute, in milliseconds. */
  minuteMs: z.int().positive().default(60_000),
  /** Milliseconds after creation after which a sandbox can be deleted even while its state changes. */
  stuckMs: z.int().min(0).default(1_500),
  /** Between SIGTERM and SIGKILL when a session is deleted. Daytona's is 5 s. */
  sessionGraceMs: z.int().min(0).default(5_000),
});
export type LoopbackOptions = z.input<typeof loopbackOptions>;
export type ResolvedOptions = z.output<typeof loopbackOptions>;
export type ResolvedSnapshot = z.output<typeof snapshot>;
export type ResolvedWorldHost = z.output<typeof worldHost>;
