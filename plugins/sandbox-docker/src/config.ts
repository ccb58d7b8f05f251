import { bridgeSchema } from "@ambit/bridge";
import { sandboxImageName } from "@ambit/sandbox-image";
import { z } from "zod";

const word = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,30}$/, "must be letters, digits, - or _, at most 31");

/** Megabytes (MiB). */
const megabytes = z.int().positive().max(1_048_576);

/** Settings of a deployer for sandboxes in containers. Every default is here. */
export const configSchema = z.strictObject({
  /** The name that requests select it by. Two entries with two names give two runtimes or engines. */
  name: word.default("docker"),
  /**
   * Address of a Docker or Podman engine: `unix:///path`, or `tcp://host:port` within a network that only trusted hosts
   * reach. Default: `DOCKER_HOST`, else `unix:///var/run/docker.sock`.
   */
  engine: z
    .string()
    .regex(
      /^(unix:\/\/\/.+|tcp:\/\/[^/\s]+:\d+)$/,
      'must be "unix:///path/to/docker.sock" or "tcp://host:port"',
    )
    .optional(),
  /** The container runtime, by the engine's name for it: `runc`, `runsc` (gVisor). Default: the engine's. */
  runtime: z.string().min(1).optional(),
  /**
   * Image of the sandboxes: with Node.js 18 or newer, `/bin/sh`, `mount`, `setpriv`, and what agents and tools need, such
   * as a devcontainer's. Default: the one that `ambit-sandbox-image build` makes.
   */
  image: z
    .string()
    .min(1)
    .default(() => sandboxImageName()),
  /** `missing`: the engine pulls the image if it doesn't have it. */
  pull: z.enum(["never", "missing"]).default("never"),
  /**
   * How an agent that is installed on the runner gets inside. `mount`: read-only, at no cost; the engine must see the
   * runner's files. `copy`: up to `bridge.copyBytes`. Default: `mount` for a `unix://` engine, else `copy`.
   */
  agents: z.enum(["mount", "copy"]).optional(),
  /** Folders and files of the engine's host that every sandbox sees, read-only, such as one with agents. */
  mounts: z
    .array(z.strictObject({ source: z.string().startsWith("/"), target: z.string().regex(/^\/(?!$)/) }))
    .default([]),
  /** `PATH` inside. Default: the image's. */
  searchPath: z.string().min(1).optional(),
  /**
   * AppArmor profile of the sandboxes, on engines that have it. Default: the engine's own, which forbids `mount`: then
   * processes see each other, and `environment.per-tool` is refused. `unconfined`, or one that allows `mount`.
   */
  appArmor: z.string().min(1).optional(),
  /** The engine's network for runs without a network boundary. All others have none, and connect through the runner. */
  network: z
    .string()
    .min(1)
    .refine(
      (name) => name !== "host" && !/^(container|ns):/.test(name),
      "must not be a network of other processes",
    )
    .default("bridge"),
  /** Size of each of the folders in memory that all of a session's processes may write to, such as `/tmp`, in MiB. */
  scratchMb: megabytes.default(256),
  /** Largest disk limit that a run may ask for, in MiB: a workspace with a limit is kept in memory. */
  maxDiskMb: megabytes.default(2_048),
  /** Processes and threads of a sandbox whose run sets no limit, so that no sandbox exhausts the host. */
  processes: z.int().min(64).default(4_096),
  /**
   * Absolute paths of PEM files: authorities of servers that credentials may be sent to, besides those that this host
   * and Node trust.
   */
  trustedAuthorities: z.array(z.string().startsWith("/", "must be an absolute path")).default([]),
  /**
   * Most containers that are prepared before a session needs them. They have the boundaries of the last sessions; each serves
   * one session, takes some 40 MiB of memory, and is removed after 15 minutes unused. Default: 1 for a `unix://` engine,
   * from the second session on; else 0.
   */
  prewarm: z.int().min(0).max(100).optional(),
  /**
   * Prepared environments that the engine keeps as volumes, so that a sandbox begins with one without a copy. `max`: the most
   * of this deployment, 0 for none. `maxAgeDays`: older ones are removed when one is made, and by
   * each search for leftovers; a server uses none after its `workspace.rebuildAfterMs`.
   */
  layers: z
    .strictObject({
      max: z.int().min(0).max(1_000).default(10),
      maxAgeDays: z.number().positive().max(3_650).default(8),
    })
    .prefault({}),
  /** Runners with the same value remove each other's leftover containers. */
  deployment: word.default("ambit"),
  /** Minutes after which runners on other hosts may delete a sandbox. Must be longer than a session lives. */
  ttlMinutes: z.int().min(5).default(1_440),
  /** Minutes between two searches for containers of runners that have ended. */
  reapMinutes: z.number().positive().default(10),
  /** Time limit for one request to the engine, in milliseconds. */
  requestTimeoutMs: z.int().min(1_000).default(30_000),
  /**
   * Absolute path of a folder that shows which runners are alive. Default: `/var/lib/ambit/docker` as root, else
   * `$XDG_STATE_HOME/ambit/docker` or `~/.local/state/ambit/docker`.
   */
  dataFolder: z.string().startsWith("/", "must be an absolute path").optional(),
  bridge: bridgeSchema.extend({ folder: bridgeSchema.shape.folder.default("/ambit") }).prefault({}),
});
export type DockerConfig = z.output<typeof configSchema>;

export function addressOf(
  { engine }: Pick<DockerConfig, "engine">,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): string {
  return engine ?? (environment.DOCKER_HOST || "unix:///var/run/docker.sock");
}

/** Whether the engine is on this host, judged by its address. */
const isLocal = (config: Pick<DockerConfig, "engine">) => addressOf(config).startsWith("unix://");

/** The most containers that wait for sessions: by default one, and none on the machine of a remote engine. */
export function preparedBy(config: Pick<DockerConfig, "engine" | "prewarm">): number {
  return config.prewarm ?? (isLocal(config) ? 1 : 0);
}

/** Whether sandboxes mount the runner's files: by default where the engine is on this host. */
export function mountsAgents(config: Pick<DockerConfig, "engine" | "agents">): boolean {
  return (config.agents ?? (isLocal(config) ? "mount" : "copy")) === "mount";
}
