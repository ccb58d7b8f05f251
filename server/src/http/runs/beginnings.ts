import type { AtCapacity } from "@ambit/core";

/**
 * What is known of a request that is to begin a run. A fact is undefined until it has been looked at.
 * @template Existing a run that another request began @template Running the run that this request began
 * @template Queued the run of this request that waits
 */
export interface RequestFacts<Existing, Running, Queued> {
  /** Whether the caller only wants the run's address. Its run may wait in the queue. */
  readonly isDetached: boolean;
  /** Whether the caller named the run, by an idempotency key or a command. */
  readonly isNamed: boolean;
  /** The run that has the request's id already. */
  readonly existing?: "none" | { readonly run: Existing; readonly isOfSameRequest: boolean };
  /** Whether the caller's quota and the runner's slots allow one more run now, or why not. */
  readonly capacity?: "free" | AtCapacity;
  readonly attempt?: /** Another request took the project's last place meanwhile. */
    | { readonly outcome: "over_quota"; readonly sessionId: string | undefined }
    /** Another run has its session, or waits for it, and this one is to wait too. */
    | { readonly outcome: "session_busy" }
    | { readonly outcome: "queued"; readonly run: Queued }
    | { readonly outcome: "running"; readonly run: Running };
}

/** What is done next with such a request. */
export type NextStep<Existing, Running, Queued> =
  | { readonly step: "look_up" | "check_capacity" | "start" | "queue" }
  | { readonly step: "refuse_id" | "refuse_key" }
  | { readonly step: "refuse_capacity"; readonly refusal: AtCapacity }
  | { readonly step: "refuse_quota"; readonly sessionId: string | undefined }
  | EndOfRequest<Existing, Running, Queued>;

/** What a request gets that isn't refused. */
export type EndOfRequest<Existing, Running, Queued> =
  | { readonly step: "respond_existing"; readonly run: Existing }
  | { readonly step: "accept_queued" | "follow_queued"; readonly run: Queued }
  | { readonly step: "begin"; readonly run: Running };

/**
 * A request that names a run which exists gets that run, whatever the capacity is. A detached one waits in the queue for what
 * refuses any other, and one that may wait for its session waits there too. Pure.
 */
export function nextStep<Existing, Running, Queued>({
  isDetached,
  isNamed,
  existing,
  capacity,
  attempt,
}: RequestFacts<Existing, Running, Queued>): NextStep<Existing, Running, Queued> {
  if (existing === undefined) return { step: "look_up" };
  if (existing !== "none") {
    if (!isNamed) return { step: "refuse_id" };
    return existing.isOfSameRequest
      ? { step: "respond_existing", run: existing.run }
      : { step: "refuse_key" };
  }
  if (attempt?.outcome === "queued")
    return { step: isDetached ? "accept_queued" : "follow_queued", run: attempt.run };
  if (attempt?.outcome === "session_busy") return { step: "queue" };
  if (attempt?.outcome === "running") return { step: "begin", run: attempt.run };
  if (attempt?.outcome === "over_quota")
    return isDetached ? { step: "queue" } : { step: "refuse_quota", sessionId: attempt.sessionId };
  if (capacity === undefined) return { step: "check_capacity" };
  if (capacity === "free") return { step: "start" };
  return isDetached ? { step: "queue" } : { step: "refuse_capacity", refusal: capacity };
}

/** Requests that begin runs under one key, one after the other: each meets what the one before has begun. */
export class Beginnings {
  /** The last request of each key. */
  readonly #last = new Map<string, Promise<unknown>>();

  /** Whether a request with this key is beginning its run. */
  has(key: string): boolean {
    return this.#last.has(key);
  }

  /** @param key undefined: of no other request, so it waits for none. */
  async inTurn<Result>(key: string | undefined, begin: () => Promise<Result>): Promise<Result> {
    if (key === undefined) return begin();
    const before = this.#last.get(key);
    const beginning = Promise.resolve(before)
      .catch(() => undefined)
      .then(begin);
    this.#last.set(key, beginning);
    try {
      return await beginning;
    } finally {
      if (this.#last.get(key) === beginning) this.#last.delete(key);
    }
  }
}
