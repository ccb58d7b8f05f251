import { type Log, messageOf, SandboxFailed } from "@ambit/core/plugin";
import { protocolVersion } from "../messages.js";
import type { BridgeOptions, DirectPipe, DirectPlatform } from "../remote-sandbox.js";
import type { ByteSignal } from "../transport/byte-format.js";
import type { DirectTransport } from "../transport/direct-transport.js";
import { awaitUnlessAborted } from "./ask.js";

interface DirectConnectionOptions {
  readonly platform: DirectPlatform;
  readonly argv: readonly [program: string, ...args: string[]];
  /** What the command reads first: the guest daemon. */
  readonly program: Uint8Array;
  readonly transport: DirectTransport;
  readonly bridge: BridgeOptions;
  readonly log: Log;
  /** Called once: the sandbox's streams are lost. */
  onLost(failure: SandboxFailed): void;
}

/** Characters that are kept of output before the greeting. */
const maxNoiseLength = 500;
/** Milliseconds for a pipe to close, before the platform ends it with the sandbox. */
const closeMs = 2_000;
/** Milliseconds for the output of a command that no longer reads its input. */
const finalOutputMs = 500;
/** Milliseconds for a platform to report why a pipe ended. */
const explainMs = 5_000;

/** One pipe for the whole lifetime of a sandbox. */
export class DirectConnection {
  readonly #options: DirectConnectionOptions;
  #pipe: DirectPipe | undefined;
  #isOpen = false;
  #failure: SandboxFailed | undefined;
  #isClosed = false;
  #lastActivityAt = Date.now();
  #watch: NodeJS.Timeout | undefined;
  #greeted: (version: number) => void = () => undefined;
  /** Output before the greeting, which may say why there is none. */
  #noise = "";

  constructor(options: DirectConnectionOptions) {
    this.#options = options;
  }

  get isOpen(): boolean {
    return this.#isOpen && !this.#isClosed;
  }

  /** @throws SandboxFailed when no guest daemon of this version answers. */
  async open(signal: AbortSignal): Promise<void> {
    const { platform, argv, bridge } = this.#options;
    const limit = AbortSignal.any([signal, AbortSignal.timeout(bridge.heartbeatTimeoutMs)]);
    try {
      signal.throwIfAborted();
      const pipe = await awaitUnlessAborted(
        limit,
        platform.openDirectPipe(argv, limit),
        (late) => void late.close(),
      );
      this.#pipe = pipe;
      const version = await awaitUnlessAborted(limit, this.#greeting(pipe));
      if (version !== protocolVersion) throw new Error(`it speaks version ${version} of the protocol`);
      // What immediately followed the greeting may have ended it.
      if (this.#failure !== undefined) throw this.#failure;
      this.#isOpen = true;
      this.#watchOver();
    } catch (error) {
      await this.close();
      if (error instanceof SandboxFailed || signal.aborted) throw error;
      const said = this.#noise.trim();
      // Its output may be lost with the pipe.
      const ended = said === "" ? await this.#platformsReason() : undefined;
      const why = messageOf(error) + (said === "" ? "" : `: ${said}`);
      throw (
        ended ?? new SandboxFailed(`The bridge can't be started in the sandbox: ${why}`, { cause: error })
      );
    }
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#watch);
    this.#options.transport.close();
    const pipe = this.#pipe;
    if (pipe === undefined) return;
    pipe.input.end();
    const tooLong = AbortSignal.timeout(closeMs);
    await awaitUnlessAborted(tooLong, pipe.close()).catch((error: unknown) => {
      this.#options.log.warn({ error }, "a bridge's pipe couldn't be closed: it ends with the sandbox");
    });
  }

  /** What the guest daemon reports about the pipe. */
  receiveSignal(op: ByteSignal, value: number): void {
    if (op === "hello") this.#greeted(value);
  }

  #greeting(pipe: DirectPipe): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#greeted = resolve;
      const lost = (error?: unknown) => {
        const why = error instanceof Error ? error : new Error("its command ended");
        reject(why);
        this.#lost(why);
      };
      let broken: (() => void) | undefined;
      pipe.output.on("data", (bytes: Buffer) => {
        this.#lastActivityAt = Date.now();
        if (!this.#isOpen) this.#noise = (this.#noise + bytes.toString("latin1")).slice(0, maxNoiseLength);
        if (broken === undefined) {
          try {
            this.#options.transport.accept(bytes);
            return;
          } catch (error) {
            broken = () => {
              reject(error);
              this.#broken(error);
            };
            // A command that couldn't be started may say why in several pieces.
            if (!this.#isOpen) setTimeout(broken, finalOutputMs);
          }
        }
        if (this.#isOpen || this.#noise.length === maxNoiseLength) broken();
      });
      pipe.output.once("end", () => lost());
      pipe.output.once("close", () => lost());
      pipe.output.on("error", lost);
      // Of a command that couldn't be started or ended at once, the output says why.
      pipe.input.on("error", (error) => setTimeout(lost, this.#isOpen ? 0 : finalOutputMs, error));
      if (this.#options.platform.hasProgram !== true) pipe.input.write(this.#options.program);
      this.#options.transport.attach(pipe.input);
      this.#options.transport.signal("hello", protocolVersion);
    });
  }

  #watchOver(): void {
    const { heartbeatTimeoutMs, orphanTimeoutMs } = this.#options.bridge;
    this.#watch = setInterval(() => {
      if (Date.now() - this.#lastActivityAt > heartbeatTimeoutMs)
        this.#lost(new Error(`nothing was heard for ${heartbeatTimeoutMs} ms`));
      else this.#options.transport.signal("ping", 0);
      // Each side considers the other lost when it is silent for too long.
    }, Math.min(heartbeatTimeoutMs, orphanTimeoutMs) / 3);
    this.#watch.unref();
  }

  #broken(error: unknown): void {
    this.#end(
      error instanceof SandboxFailed
        ? error
        : new SandboxFailed(`The bridge inside broke its protocol: ${messageOf(error)}`, { cause: error }),
    );
  }

  #lost(why: Error): void {
    const unknown = new SandboxFailed(`The sandbox can't be reached any more: ${messageOf(why)}`, {
      cause: why,
    });
    this.#end(unknown, async () => (await this.#platformsReason()) ?? unknown);
  }

  /** Why the sandbox ended, if the platform says so in time. */
  async #platformsReason(): Promise<SandboxFailed | undefined> {
    const { platform, log } = this.#options;
    const limit = AbortSignal.timeout(explainMs);
    try {
      return await awaitUnlessAborted(limit, platform.whyLost?.(limit) ?? Promise.resolve(undefined));
    } catch (error) {
      log.warn({ error }, "the platform doesn't say why a sandbox was lost");
      return undefined;
    }
  }

  #end(failure: SandboxFailed, explain = async () => failure): void {
    if (this.#isClosed) return;
    const wasOpen = this.#isOpen;
    this.#failure = failure;
    void this.close();
    if (wasOpen) void explain().then((explained) => this.#options.onLost(explained));
  }
}
