import type { Exposure, FetchHandler, Sandbox } from "@ambit/core/plugin";

/** The part of a sandbox that a route to the model needs. */
export type WayIn = Pick<Sandbox, "expose">;

/**
 * An exposure whose address and token are known before its handler: an agent that is started ahead gets them with its
 * environment. Requests before a run has it are refused.
 */
export class ReservedExposure {
  readonly #exposure: Exposure;
  readonly #answer: { handler: FetchHandler };
  readonly #asked: { count: number };

  private constructor(exposure: Exposure, answer: { handler: FetchHandler }, asked: { count: number }) {
    this.#exposure = exposure;
    this.#answer = answer;
    this.#asked = asked;
  }

  static async on(sandbox: WayIn): Promise<ReservedExposure> {
    const asked = { count: 0 };
    const closed = () => {
      asked.count += 1;
      return new Response(null, { status: 503 });
    };
    const answer: { handler: FetchHandler } = { handler: closed };
    const exposure = await sandbox.expose((request) => answer.handler(request));
    return new ReservedExposure(exposure, answer, asked);
  }

  /** Whether something inside sent a request before a run had it. */
  get wasAsked(): boolean {
    return this.#asked.count > 0;
  }

  /** Tells its address, and keeps it closed whatever is exposed. */
  get closed(): WayIn {
    const { url, token } = this.#exposure;
    return { expose: async () => ({ url, token, close: async () => undefined }) };
  }

  /** For the run that gets it: what is exposed has its address. For one handler. */
  get open(): WayIn {
    return {
      expose: async (handler) => {
        this.#answer.handler = handler;
        return this.#exposure;
      },
    };
  }
}
