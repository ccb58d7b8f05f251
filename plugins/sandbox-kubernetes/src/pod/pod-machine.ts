import { setTimeout as after } from "node:timers/promises";
import { signalWithin } from "@ambit/backend-kit";
import type { BinaryPipe } from "@ambit/bridge";
import { SandboxFailed } from "@ambit/core/plugin";
import type { ExecStream } from "../api/exec-stream.js";
import { ApiError, asSandboxFailed, isGone } from "../api/server.js";
import type { KubernetesConfig } from "../config.js";
import type { Cluster } from "./cluster.js";
import { containerName, enteringCommand } from "./manifest.js";
import { failureOf, troubleOf } from "./status.js";

/** Writes a whole file or none, also if the connection breaks in between. */
const uploadScript = `umask 022; d=\${1%/*}; mkdir -p "$d" && head -c "$2" > "$1.part" &&
[ "$(wc -c < "$1.part")" -eq "$2" ] && chmod a+r "$1.part" && mv "$1.part" "$1"`;

const maxOutputCharacters = 4_000;
/** Milliseconds between two looks whether a deleted pod is gone. */
const lookAgainMs = 100;
const uploadTries = 3;

export interface Ended {
  readonly code: number | undefined;
  readonly output: string;
}

/** A command that runs, after the lines that it began with. */
export interface Begun {
  readonly lines: readonly string[];
  readonly pipe: BinaryPipe;
}

/** A pod, as the bridge needs it. */
export class PodMachine {
  readonly #cluster: Cluster;
  readonly #config: KubernetesConfig;
  #destroyed: Promise<void> | undefined;
  #hasPipe = false;

  constructor(
    cluster: Cluster,
    config: KubernetesConfig,
    readonly name: string,
    readonly uid: string,
    readonly container = containerName,
  ) {
    this.#cluster = cluster;
    this.#config = config;
  }

  async openBinaryPipe(
    argv: readonly [program: string, ...args: string[]],
    signal: AbortSignal,
  ): Promise<BinaryPipe> {
    const { bridge, searchPath } = this.#config;
    // The server accepts a connection to a container that has ended, and only then says that there is none.
    const lost = this.#hasPipe ? await this.whyLost(signal) : undefined;
    if (lost !== undefined) throw lost;
    this.#hasPipe = true;
    return pipeOf(await this.#exec(enteringCommand(bridge.folder, argv, searchPath), signal));
  }

  /**
   * Starts a command that says this many lines and then reads. It is given its input after them, so that a failed try costs
   * nothing.
   *
   * @returns how it ended, if it did before
   */
  async begin(
    argv: readonly string[],
    { count, input }: { readonly count: number; readonly input: Uint8Array },
    signal: AbortSignal,
  ): Promise<Begun | Ended> {
    const limit = signalWithin(this.#config.requestTimeoutMs, signal);
    const stream = await this.#exec(argv, limit);
    const stop = () => stream.close();
    limit.addEventListener("abort", stop, { once: true });
    let isPipe = false;
    try {
      const reader = stream.output.getReader();
      let said = "";
      while (said.split("\n").length <= count) {
        const { done, value } = await reader.read();
        if (done) return await this.#endOf(stream, said);
        said += Buffer.from(value).toString("latin1");
        if (said.length > maxOutputCharacters) throw new Error("the command says something else");
      }
      reader.releaseLock();
      [isPipe, this.#hasPipe] = [true, true];
      // Whether it arrives shows in what the command answers.
      stream.write(input).catch(() => undefined);
      return { lines: said.split("\n"), pipe: pipeOf(stream) };
    } catch (error) {
      limit.throwIfAborted();
      throw error;
    } finally {
      limit.removeEventListener("abort", stop);
      if (!isPipe) stream.close();
    }
  }

  /** Runs one of the plugin's own commands to its end, as root and outside the sandbox's own network. */
  async run(argv: readonly string[], signal: AbortSignal, input?: Uint8Array): Promise<Ended> {
    const limit = signalWithin(this.#config.requestTimeoutMs, signal);
    const stream = await this.#exec(argv, limit);
    const stop = () => stream.close();
    limit.addEventListener("abort", stop, { once: true });
    try {
      // A command that ends early doesn't read the rest: its exit code says why.
      if (input !== undefined) stream.write(input).catch(() => undefined);
      let output = "";
      const decoder = new TextDecoder();
      for await (const bytes of stream.output)
        output = `${output}${decoder.decode(bytes, { stream: true })}`.slice(-maxOutputCharacters);
      return await this.#endOf(stream, output);
    } catch (error) {
      limit.throwIfAborted();
      throw error;
    } finally {
      limit.removeEventListener("abort", stop);
      stream.close();
    }
  }

  async #endOf(stream: ExecStream, output: string): Promise<Ended> {
    const { code, reason, message } = await stream.end;
    if (code === undefined) throw new ApiError(500, reason, message);
    return { code, output: `${output}\n${stream.errors}`.trim() };
  }

  async upload(path: string, content: Uint8Array, signal: AbortSignal): Promise<void> {
    const argv = ["/bin/sh", "-c", uploadScript, "sh", path, `${content.length}`];
    for (let tries = 1; ; tries += 1) {
      try {
        const { code, output } = await this.run(argv, signal, content);
        if (code === 0) return;
        throw new SandboxFailed(`${path} couldn't be written in the pod: ${output}`, { concerns: "session" });
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof SandboxFailed || tries === uploadTries)
          throw asSandboxFailed(error, `write ${path} in the pod ${this.name}`);
        await after(lookAgainMs, undefined, { signal });
      }
    }
  }

  async #exec(argv: readonly string[], signal: AbortSignal): Promise<ExecStream> {
    try {
      return await this.#cluster.exec(this.name, this.container, argv, signal);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      throw (await this.whyLost(signal).catch(() => undefined)) ?? error;
    }
  }

  /** Why nothing runs in it any more; undefined while it may still run. */
  async whyLost(signal: AbortSignal): Promise<SandboxFailed | undefined> {
    const pod = await this.#cluster.pod(this.name, signal);
    if (pod === undefined || pod.metadata.uid !== this.uid) return deleted();
    const trouble = troubleOf(pod, this.#config.image);
    return trouble === undefined || trouble.mayPass ? undefined : failureOf(trouble);
  }

  /** Settles when the cluster has no such pod any more. @throws SandboxFailed when that isn't confirmed in time */
  destroy(): Promise<void> {
    this.#destroyed ??= deleteAndConfirm(this.#cluster, this.#config, this);
    return this.#destroyed;
  }
}

const pipeOf = (stream: ExecStream): BinaryPipe => ({
  output: stream.output,
  write: (bytes) => stream.write(bytes),
  close: async () => stream.close(),
});

export const deleted = () =>
  new SandboxFailed("The pod was deleted: leave pods with the label ambit=sandbox to Ambit", {
    concerns: "session",
  });

/** The kubelet removes the object only when its containers have ended. */
export async function deleteAndConfirm(
  cluster: Cluster,
  { closeTimeoutMs }: Pick<KubernetesConfig, "closeTimeoutMs">,
  { name, uid }: { readonly name: string; readonly uid: string },
): Promise<void> {
  const until = Date.now() + closeTimeoutMs;
  let [isAsked, why] = [false, "its node may be away: see `kubectl get nodes`"];
  while (Date.now() < until) {
    try {
      if (!isAsked) await cluster.deletePod(name, uid);
      isAsked = true;
      const left = await cluster.pod(name);
      if (left === undefined || left.metadata.uid !== uid) return;
    } catch (error) {
      if (isGone(error)) return;
      if (error instanceof ApiError && error.status < 500 && error.status !== 429)
        throw asSandboxFailed(error, `delete the pod ${name}`);
      why = error instanceof Error ? error.message : String(error);
    }
    await after(lookAgainMs);
  }
  throw new SandboxFailed(
    `The end of the pod ${name} isn't confirmed after ${closeTimeoutMs} ms, and its processes may still run: ${why}. It ends by itself when its runner is silent, and at its deadline`,
  );
}
