import { nameOf } from "./session-keeper.js";

/** Names that are remembered; beyond that, the oldest are forgotten. */
const maxNames = 10_000;

/** Why files of named sessions were lost, for the next run of each name: where nothing outlives this process. */
export class LostFiles {
  readonly #reasons = new Map<string, string>();

  /** @param key the session's. */
  add(key: string, reason: string): void {
    this.#reasons.delete(key);
    this.#reasons.set(key, reason);
    for (const oldest of this.#reasons.keys()) {
      if (this.#reasons.size <= maxNames) return;
      this.#reasons.delete(oldest);
    }
  }

  of(key: string): string | undefined {
    return this.#reasons.get(key);
  }

  delete(key: string): void {
    this.#reasons.delete(key);
  }
}

/** The warning of the next run with that name. Pure. */
export function lostWarning(reason: string): string {
  return `is a session that lost its files, because ${reason}: its workspace and its conversation are new`;
}

/** Reasons that don't come from a failure. */
export const lostBecause = {
  failed: ({ message }: Pick<Error, "message">) => `its sandbox failed: ${message}`,
  unused: (ms: number) => `no run used it for ${ms / 1_000} s (limits.sessionTtlMs)`,
  evicted: (key: string) =>
    nameOf(key).project === undefined
      ? "other sessions needed its place (limits.sessions)"
      : "other sessions of its project needed its place (limits.sessions, limits.sessionsPerProject)",
  notKept: "this server keeps no sessions between runs (limits.sessions is 0)",
  stopped: "its server stopped, and could not keep them",
  abandoned: "its server ended without closing it",
} as const;
