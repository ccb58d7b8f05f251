import { relative } from "node:path/posix";
import type { Duplex } from "node:stream";
import { setTimeout as after } from "node:timers/promises";
import { firstByteWithin, signalWithin } from "@ambit/backend-kit";
import type { DirectPipe, DirectPlatform } from "@ambit/bridge";
import { codeOf, endOf, SandboxFailed, TextEnd } from "@ambit/core/plugin";
import type Docker from "dockerode";
import { Header } from "tar";
import type { DockerConfig } from "../config.js";
import { attachTo, directPipeOf, payloadsOf } from "../engine/attached.js";
import type { Engine } from "../engine/engine.js";
import { asSandboxFailed, engineMessage, statusOf } from "../engine/engine.js";

const block = 512;

/** One file, readable by everyone, and the folders in between, as the engine unpacks it (POSIX tar). */
export function archiveOf(path: string, content: Uint8Array): Buffer {
  const names = path.split("/").filter((name) => name !== "");
  const folders = names.slice(0, -1).map((_, index) => `${names.slice(0, index + 1).join("/")}/`);
  const owner = { uid: 0, gid: 0, mtime: new Date() };
  return Buffer.concat([
    ...folders.map((folder) => headerOf({ ...owner, path: folder, mode: 0o755, size: 0, type: "Directory" })),
    headerOf({ ...owner, path: names.join("/"), mode: 0o644, size: content.length, type: "File" }),
    content,
    Buffer.alloc(((block - (content.length % block)) % block) + 2 * block),
  ]);
}

function headerOf(fields: ConstructorParameters<typeof Header>[0]): Buffer {
  const bytes = Buffer.alloc(block);
  if (new Header(fields).encode(bytes, 0)) throw new Error("a path is too long for an archive");
  return bytes;
}

const root = "0:0";
/** Characters of a command's output that are kept. */
const maxOutputCharacters = 1_000;
/** Milliseconds between two checks whether a container is gone. */
const pollMs = 50;
/** Milliseconds for the last output of a command that has ended. */
const lastWordsMs = 1_000;
/** Milliseconds in which a busy engine notices that a container has ended. */
const noticeMs = 2_000;

interface ContainerExit {
  readonly code: number | null;
  readonly output: string;
}

/** A running container, as the bridge needs it. */
export class Container implements DirectPlatform {
  readonly #engine: Engine;
  readonly #container: Docker.Container;
  readonly #config: DockerConfig;
  readonly #hasVolume: boolean;
  /** The guest daemon's. */
  #pipe: DirectPipe | undefined;
  #destroyed: Promise<void> | undefined;

  /** @param hasVolume whether the bridge's folder is a volume, which the engine writes to without a command. */
  constructor(engine: Engine, id: string, config: DockerConfig, hasVolume: boolean) {
    this.#engine = engine;
    this.#container = engine.getContainer(id);
    this.#config = config;
    this.#hasVolume = hasVolume;
  }

  get id(): string {
    return this.#container.id;
  }

  /** Its first command gets its program when it starts. */
  readonly hasProgram = true;

  /** Starts its first command, attached to it from the first byte on. @param input of the command. */
  async start(input: Uint8Array, signal: AbortSignal): Promise<void> {
    const { requestTimeoutMs } = this.#config;
    const attach = (abortSignal: AbortSignal) => attachTo(this.#engine, this.id, abortSignal);
    this.#pipe = directPipeOf(await firstByteWithin(requestTimeoutMs, signal, attach));
    await this.#container.start({ abortSignal: signalWithin(this.#config.requestTimeoutMs, signal) });
    // Of a command that ended at once, what it said says why.
    this.#pipe.input.on("error", () => undefined);
    this.#pipe.input.write(input);
  }

  inspect(signal?: AbortSignal): Promise<Docker.ContainerInspectInfo> {
    return this.#container.inspect({ abortSignal: signalWithin(this.#config.requestTimeoutMs, signal) });
  }

  /** To the first command. */
  async openDirectPipe(): Promise<DirectPipe> {
    if (this.#pipe === undefined) throw new SandboxFailed("The container isn't started");
    return this.#pipe;
  }

  /** What the first command said before it ended, if it never got as far as the bridge. */
  async lastWords(): Promise<string> {
    const { output } = this.#pipe ?? {};
    if (output === undefined || output.listenerCount("data") > 0) return "";
    const tooLong = setTimeout(() => output.destroy(), lastWordsMs);
    const said = await endOf(output, maxOutputCharacters);
    clearTimeout(tooLong);
    return said.trim();
  }

  async upload(path: string, content: Uint8Array, signal: AbortSignal): Promise<void> {
    const { folder } = this.#config.bridge;
    if (this.#hasVolume) {
      const archive = archiveOf(relative(folder, path), content);
      await this.#repeated(signal, () =>
        this.#container.putArchive(archive, {
          path: folder,
          abortSignal: signalWithin(this.#config.requestTimeoutMs, signal),
        }),
      );
      return;
    }
    // The engine doesn't see mounts in memory: it would unpack archives below them.
    const script = 'mkdir -p "$(dirname "$0")" && head -c "$1" > "$0" && chmod a+r "$0"';
    const argv = ["/bin/sh", "-c", script, path, `${content.length}`] as const;
    const { code, output } = await this.run(argv, signal, { AttachStdin: true }, content);
    if (code !== 0) throw new SandboxFailed(`${path} couldn't be written in the sandbox: ${output}`);
  }

  /** Runs one of the plugin's own commands to its end. It may run twice. */
  run(
    argv: readonly string[],
    signal: AbortSignal,
    options: Pick<Docker.ExecCreateOptions, "Privileged" | "AttachStdin"> = {},
    input?: Uint8Array,
  ): Promise<ContainerExit> {
    return this.#repeated(signal, () => this.#runOnce(argv, signal, options, input));
  }

  /** Asks a second time if the engine closed the connection early and the container still runs. */
  async #repeated<Result>(signal: AbortSignal, ask: () => Promise<Result>): Promise<Result> {
    try {
      return await ask();
    } catch (error) {
      if (!isDropped(error)) throw error;
      const reason = await this.whyLost(signal);
      if (reason !== undefined) throw reason;
      return await ask();
    }
  }

  async #runOnce(
    argv: readonly string[],
    signal: AbortSignal,
    options: Pick<Docker.ExecCreateOptions, "Privileged" | "AttachStdin">,
    input: Uint8Array | undefined,
  ): Promise<ContainerExit> {
    const stream = await this.#join(argv, options, signal);
    const stop = () => stream.destroy(new Error("given up"));
    signal.addEventListener("abort", stop, { once: true });
    try {
      if (input !== undefined) stream.write(input);
      const output = new TextEnd(maxOutputCharacters);
      for await (const bytes of payloadsOf(stream)) output.push(bytes);
      const { ExitCode } = await stream.exec.inspect({
        abortSignal: signalWithin(this.#config.requestTimeoutMs, signal),
      });
      return { code: ExitCode, output: output.text.trim() };
    } finally {
      signal.removeEventListener("abort", stop);
      stream.destroy();
    }
  }

  async #join(
    argv: readonly string[],
    options: Docker.ExecCreateOptions,
    signal: AbortSignal,
  ): Promise<Duplex & { readonly exec: Docker.Exec }> {
    const abortSignal = signalWithin(this.#config.requestTimeoutMs, signal);
    try {
      const exec = await this.#container.exec({
        Cmd: [...argv],
        User: root,
        WorkingDir: "/",
        AttachStdout: true,
        AttachStderr: true,
        ...options,
        abortSignal,
      });
      const stream = await firstByteWithin(this.#config.requestTimeoutMs, signal, (abortSignal) =>
        exec.start({ hijack: true, stdin: true, abortSignal }),
      );
      return Object.assign(stream, { exec });
    } catch (error) {
      throw await this.#whyNot(error);
    }
  }

  /** Why nothing can be started in it: a SandboxFailed if it is gone for good. */
  async #whyNot(error: unknown): Promise<unknown> {
    const status = statusOf(error);
    if (status === 404) return new SandboxFailed("The container was removed", { cause: error });
    if (status !== 409 && status !== 500) return error;
    const found = await this.inspect().catch(() => undefined);
    // The engine answers 500 if it ended after the command was made and before it was started.
    if (status === 500 && found?.State.Running !== false) return error;
    return this.#explained(found, error, await this.lastWords());
  }

  /** Why its pipe ended; undefined while the container runs. */
  async whyLost(signal: AbortSignal): Promise<SandboxFailed | undefined> {
    try {
      return await this.whyEnded(signal);
    } catch (error) {
      return asSandboxFailed(error, `say why the container ${this.id.slice(0, 12)} ended`, this.#config);
    }
  }

  /**
   * Undefined if it still runs, or never ran. The engine may report its end later than a pipe or a command shows it.
   * @param withinMs how long it is asked again.
   */
  async whyEnded(signal: AbortSignal, withinMs = noticeMs): Promise<SandboxFailed | undefined> {
    for (const end = Date.now() + withinMs; ; ) {
      try {
        const found = await this.inspect(signal);
        const { Status, Running, OOMKilled } = found.State;
        if (Status === "created") return undefined;
        if (!Running || OOMKilled) return this.#explained(found, undefined, await this.lastWords());
      } catch (error) {
        if (statusOf(error) !== 404) throw error;
        return new SandboxFailed("The container was removed", { cause: error });
      }
      if (Date.now() > end) return undefined;
      await after(pollMs, undefined, { signal });
    }
  }

  #explained(found: Docker.ContainerInspectInfo | undefined, cause?: unknown, said = ""): SandboxFailed {
    if (found?.State.OOMKilled === true) {
      return new SandboxFailed("The container ended: it needed more memory than its limit", {
        cause,
        concerns: "session",
      });
    }
    const how =
      found === undefined ? engineMessage(cause) : `${found.State.Status}, exit code ${found.State.ExitCode}`;
    const why = said === "" ? "it, its guest daemon or its engine was stopped" : said;
    return new SandboxFailed(`The container doesn't run any more (${how}): ${why}`, { cause });
  }

  destroy(): Promise<void> {
    void this.#pipe?.close();
    this.#destroyed ??= removeContainer(this.#container, this.#config);
    return this.#destroyed;
  }
}

/** Whether the connection ended before the answer. */
const isDropped = (error: unknown) => ["EPIPE", "ECONNRESET"].includes(codeOf(error) ?? "");

/** Whether the engine wrote a container's last state while it removed the folder of it. */
const isStillWriting = (error: unknown) =>
  statusOf(error) === 500 && /unable to remove filesystem/.test(engineMessage(error));

/** Removes it with its volume. Settles when it is gone. @throws SandboxFailed when that takes too long. */
export async function removeContainer(container: Docker.Container, config: DockerConfig): Promise<void> {
  const abortSignal = signalWithin(config.requestTimeoutMs);
  try {
    for (;;) {
      try {
        await container.remove({ force: true, v: true, abortSignal });
      } catch (error) {
        if (statusOf(error) === 404) return;
        // It is ending, or another removal is under way: repeat the request until the engine reports that it doesn't exist.
        if (statusOf(error) !== 409 && !isStillWriting(error)) throw error;
        await after(pollMs, undefined, { signal: abortSignal });
      }
    }
  } catch (error) {
    throw asSandboxFailed(error, `remove the container ${container.id.slice(0, 12)}`, config);
  }
}
