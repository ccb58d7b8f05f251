import { BoundedAgent, isLate } from "@ambit/backend-kit";
import { type Capability, codeOf, SandboxFailed } from "@ambit/core/plugin";
import Docker from "dockerode";
import { z } from "zod";
import { addressOf, type DockerConfig } from "../config.js";

/** A connection to the engine over Docker's API, which Podman also implements. */
export type Engine = Docker;

const addressFix =
  'set it, or sandbox-docker\'s engine, to "unix:///path/to/docker.sock" or "tcp://host:port"';

/** Connects with the first request. Reads nothing of the environment but `DOCKER_HOST`. */
export function connectTo(config: DockerConfig): Engine {
  const address = addressOf(config);
  const [, socketPath] = /^unix:\/\/(\/.*)$/.exec(address) ?? [];
  // A stream that is attached to a command may be silent for long, so only single requests have a time limit.
  const bounds = { agent: new BoundedAgent() };
  if (socketPath !== undefined) return new Docker(Object.assign(bounds, { socketPath }));
  const [, host, port] = /^tcp:\/\/\[?([^/\s]+?)\]?:(\d+)$/.exec(address) ?? [];
  if (host === undefined || port === undefined) {
    throw new SandboxFailed(`DOCKER_HOST is "${address}": ${addressFix}`);
  }
  return new Docker(Object.assign(bounds, { protocol: "http" as const, host, port: Number(port) }));
}

/** The engine, its parts such as containerd and runc with their versions, its runtimes, and the image. @throws Error */
export async function identityOf(
  engine: Engine,
  { image, runtime }: Pick<DockerConfig, "image" | "runtime">,
  signal: AbortSignal,
): Promise<readonly string[]> {
  // The library's types don't have the option.
  const asked: {
    version(options: object): Promise<Docker.DockerVersion>;
    info(
      options: object,
    ): Promise<{ readonly Runtimes?: object; readonly SecurityOptions?: readonly string[] }>;
  } = engine;
  const named: { inspect(options: object): Promise<{ readonly Id: string }> } = engine.getImage(image);
  const [{ Components = [], KernelVersion }, { Runtimes, SecurityOptions }, { Id }] = await Promise.all([
    asked.version({ abortSignal: signal }),
    asked.info({ abortSignal: signal }),
    named.inspect({ abortSignal: signal }),
  ]);
  return [JSON.stringify([Components, KernelVersion, Runtimes, SecurityOptions, runtime, Id])];
}

/** An engine's error response, as dockerode throws it. */
const errorSchema = z.object({
  statusCode: z.int(),
  json: z.object({ message: z.string() }).optional().catch(undefined),
});

export function statusOf(error: unknown): number | undefined {
  return errorSchema.safeParse(error).data?.statusCode;
}

/** The engine's own message as one line, or the error's. */
export function engineMessage(error: unknown): string {
  const said = errorSchema.safeParse(error).data?.json?.message;
  const words = said ?? (error instanceof Error ? error.message : String(error));
  return words.replaceAll(/\s+/g, " ").trim().slice(0, 500);
}

const unknownFix = "see the engine's log, or name another sandbox";

interface Explained {
  readonly reason: string;
  readonly fix: string;
}

const byCode: Readonly<Record<string, (address: string) => Explained>> = {
  ENOENT: (address) => notThere(address),
  ECONNREFUSED: (address) => notThere(address),
  EACCES: (address) => ({
    reason: `the runner's user may not use the engine at ${address}`,
    fix: "add the user to the engine's group (usually `docker`), or name another engine",
  }),
};

const notThere = (address: string): Explained => ({
  reason: `no engine answers at ${address}`,
  fix: "start Docker or Podman's service, or set sandbox-docker's engine or DOCKER_HOST to its address",
});

const byWords: readonly (readonly [words: RegExp, fix: (config: DockerConfig) => string])[] = [
  [
    /no such image|image not known|not found: manifest|pull access denied/i,
    ({ image }) =>
      image.startsWith("ambit-sandbox")
        ? "build it with `npx ambit-sandbox-image build`, or set sandbox-docker's image to one that the engine has"
        : 'pull it, set sandbox-docker\'s pull to "missing", or its image to one that the engine has',
  ],
  [
    // The shell's exit code for a missing program, where its message was lost with the connection.
    /(failed to execute|exec:) "?\S*node\b|node\S*: (command )?(not found|no such file)|\bexit code 127\b(?!: \S)/i,
    ({ image }) =>
      `use an image with Node.js 18 or newer (${image} has none on its PATH), or set sandbox-docker's bridge.node`,
  ],
  [
    /executable file not found|failed to execute|first command ended/i,
    ({ image }) =>
      `use an image with \`/bin/sh\`, \`mount\` and util-linux's \`setpriv\`, which ${image} lacks`,
  ],
  [
    /unknown (or invalid )?runtime|runtime "?\S+"? not found|default OCI runtime/i,
    ({ runtime }) => `register the runtime ${runtime} with the engine (its daemon.json), or leave it out`,
  ],
  [
    /no space left|disk quota/i,
    () => "free space where the engine keeps its data, such as with `docker system prune`",
  ],
  [/^DOCKER_HOST is/, () => addressFix],
  [
    /^The engine was asked for/,
    () => "use an engine that runs as root, or delegate cgroups of version 2 to the rootless one's user",
  ],
  [/network .* not found/i, () => "set sandbox-docker's network to one of the engine's"],
  [
    /bind source path|no such file or directory.*mount/i,
    () => "set sandbox-docker's agents to \"copy\": the engine doesn't see the runner's files",
  ],
];

/** The cause of a failure of the engine, and how a deployer fixes it. */
function explain(error: unknown, config: DockerConfig): Explained {
  const known = byCode[codeOf(error) ?? ""]?.(addressOf(config));
  if (known !== undefined && statusOf(error) === undefined) return known;
  if (isLate(error)) {
    return {
      reason: `the engine at ${addressOf(config)} didn't answer within ${config.requestTimeoutMs / 1_000} s`,
      fix: "see its log, restart it, or raise sandbox-docker's requestTimeoutMs",
    };
  }
  const reason = engineMessage(error);
  const fix = byWords.find(([words]) => words.test(reason))?.[1](config);
  return { reason, fix: fix ?? unknownFix };
}

/** @param doing what was asked of the engine: `create a container`. */
export function asSandboxFailed(error: unknown, doing: string, config: DockerConfig): SandboxFailed {
  if (error instanceof SandboxFailed) return error;
  const { reason, fix } = explain(error, config);
  return new SandboxFailed(`The engine couldn't ${doing}: ${reason}: ${fix}`, { cause: error });
}

/** For findings of a probe: what the engine said, or what is known of a runtime. */
export function fixFor(error: unknown, config: DockerConfig, capability: Capability): string {
  const causes = error instanceof SandboxFailed && error.cause !== undefined ? [error.cause, error] : [error];
  const fix = causes.map((one) => explain(one, config).fix).find((one) => one !== unknownFix) ?? unknownFix;
  if (fix !== unknownFix || !capability.startsWith("resources.")) return fix;
  return config.runtime === undefined || config.runtime === "runc"
    ? "look at `docker info`: it warns of limits that the host's cgroups don't have; with a rootless engine, delegate them to its user"
    : `use the runtime runc: ${config.runtime} doesn't hold this limit here`;
}
