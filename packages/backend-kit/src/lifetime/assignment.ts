import { forwardingLog } from "@ambit/attacks/probe";
import type { SandboxFailed, SandboxSpec } from "@ambit/core/plugin";
import type { Shape } from "./shape.js";

/** The one session that a prepared sandbox is given to, which it doesn't know while it is made. */
export class Assignment {
  #session: SandboxSpec | undefined;
  #failure: SandboxFailed | undefined;

  /** Undefined while it belongs to none. */
  get session(): SandboxSpec | undefined {
    return this.#session;
  }

  /** Whether it wasn't lost while it waited. */
  get isUsable(): boolean {
    return this.#failure === undefined;
  }

  /** @throws SandboxFailed if the sandbox was lost; an error if it has a session already */
  give(session: SandboxSpec): void {
    if (this.#session !== undefined) throw new Error("the sandbox belongs to a session already");
    if (this.#failure !== undefined) throw this.#failure;
    this.#session = session;
  }

  /** Several may notice that it is lost: the first reason counts. */
  fail(failure: SandboxFailed): void {
    if (this.#failure !== undefined) return;
    this.#failure = failure;
    this.#session?.onFailure?.(failure);
  }

  /** What the sandbox is made with: its log is the session's once it belongs to one, since no other log may mention it. */
  specOf(id: string, { boundary, required, requiredPaths }: Shape): SandboxSpec {
    return {
      id,
      boundary,
      required,
      requiredPaths,
      onDecision: () => undefined,
      log: forwardingLog(() => this.#session?.log),
      onFailure: (failure) => this.fail(failure),
    };
  }
}
