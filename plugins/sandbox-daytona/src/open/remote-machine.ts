import type { Pipe, RemotePlatform } from "@ambit/bridge";
import { type Log, SandboxFailed } from "@ambit/core/plugin";
import { openSessionPipe } from "../pipe.js";
import { asSandboxFailed, isPassing, ServiceFailure } from "../platform/failure.js";
import { type RemovalTimes, removeLater } from "../platform/remove-later.js";
import { withRetries } from "../platform/retries.js";
import type { Machine } from "../platform/service.js";

interface RemoteMachineOptions {
  readonly machine: Machine;
  readonly apiKey: string;
  readonly requestTimeoutMs: number;
  readonly log: Log;
  /** For a sandbox that can't be deleted at once. */
  readonly removal?: RemovalTimes;
  /** Whether this runner may delete it. Default: yes. */
  isOwn?(): Promise<boolean>;
  /**
   * Runs once, after the sandbox is gone or couldn't be deleted.
   * @param isLeft whether it was left to another runner.
   */
  onDestroyed(isLeft: boolean): Promise<void>;
}

/** The three operations that the bridge needs from a sandbox. */
export class RemoteMachine implements RemotePlatform {
  readonly #options: RemoteMachineOptions;
  #destroying: Promise<void> | undefined;

  constructor(options: RemoteMachineOptions) {
    this.#options = options;
  }

  async openPipe(argv: readonly [program: string, ...args: string[]], signal: AbortSignal): Promise<Pipe> {
    const { machine, apiKey, requestTimeoutMs, log } = this.#options;
    signal.throwIfAborted();
    try {
      const pipe = await openSessionPipe({ machine, argv, apiKey, connectMs: requestTimeoutMs, log });
      if (!signal.aborted) return pipe;
      await pipe.close();
    } catch (error) {
      const ended = await this.#whyEnded(error);
      throw ended ?? error;
    }
    throw signal.reason;
  }

  async upload(path: string, content: Uint8Array, signal: AbortSignal): Promise<void> {
    const { machine, requestTimeoutMs } = this.#options;
    try {
      // Idempotent: the same file with the same content.
      await withRetries(() => machine.upload(path, content, signal), {
        retries: 2,
        limitMs: requestTimeoutMs,
        signal,
      });
    } catch (error) {
      throw signal.aborted ? error : asSandboxFailed(error, "an upload");
    }
  }

  destroy(): Promise<void> {
    this.#destroying ??= this.#destroy();
    return this.#destroying;
  }

  async #destroy(): Promise<void> {
    const { machine, log, onDestroyed } = this.#options;
    // A sandbox that may belong to another runner isn't touched.
    let isLeft = this.#options.isOwn !== undefined;
    try {
      isLeft = (await this.#delete()) === "left";
    } catch (error) {
      const failure = error instanceof Error ? error.cause : undefined;
      if (!(failure instanceof ServiceFailure) || !(isPassing(failure) || failure.kind === "conflict"))
        throw error;
      const remove = () => this.#delete().then(() => true);
      removeLater({ name: machine.name, remove, log, holdsProcess: true, times: this.#options.removal });
    } finally {
      await onDestroyed(isLeft);
    }
  }

  async #delete(): Promise<"deleted" | "left"> {
    const { machine, requestTimeoutMs, log, isOwn } = this.#options;
    try {
      if (isOwn !== undefined && !(await isOwn())) {
        log.info({ sandbox: machine.name }, "another replica has taken the sandbox over: it stays");
        return "left";
      }
    } catch (error) {
      if (error instanceof ServiceFailure && error.kind === "missing") return "deleted";
      throw error;
    }
    await deleteMachine(machine, requestTimeoutMs);
    return "deleted";
  }

  /** Whether the sandbox has ended, and not just one connection to it. */
  async #whyEnded(error: unknown): Promise<SandboxFailed | undefined> {
    if (!(error instanceof ServiceFailure)) return undefined;
    if (error.kind === "unauthorized" || error.kind === "forbidden") return asSandboxFailed(error, "a pipe");
    try {
      return endOf(await this.#options.machine.refresh());
    } catch (second) {
      if (second instanceof ServiceFailure && !isPassing(second)) return asMissing(second);
      return undefined;
    }
  }
}

/** Why a sandbox in this state can't be used; undefined while it runs. */
export function endOf(view: {
  readonly state: string;
  readonly errorReason: string | undefined;
}): SandboxFailed | undefined {
  if (view.state === "started") return undefined;
  const reason = view.errorReason ? ` (${view.errorReason})` : "";
  return new SandboxFailed(`Daytona: the sandbox is ${view.state}${reason} and was open: start a new run`);
}

export function asMissing(failure: ServiceFailure): SandboxFailed {
  return failure.kind === "missing"
    ? new SandboxFailed("Daytona: the sandbox was deleted while it was open: start a new run", {
        cause: failure,
      })
    : asSandboxFailed(failure, "reading the sandbox's state");
}

/**
 * Deletes a sandbox. A missing one counts as deleted.
 *
 * @throws SandboxFailed when it may still exist.
 */
export async function deleteMachine(
  machine: { readonly name: string; delete(): Promise<void> },
  limitMs: number,
): Promise<void> {
  try {
    // 409: its state is changing. Deleting is idempotent.
    await withRetries(
      () => machine.delete(),
      { retries: 4, limitMs },
      (failure) => isPassing(failure) || failure.kind === "conflict",
    );
  } catch (error) {
    if (error instanceof ServiceFailure && error.kind === "missing") return;
    throw asSandboxFailed(error, `deleting the sandbox ${machine.name}`);
  }
}
