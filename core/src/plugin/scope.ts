/** Owns lifetimes: what is opened in it is closed with it, in reverse order. */
export interface Scope {
  /** Aborts when the scope begins to close, with the reason: cancelled, timed out, failed. */
  readonly signal: AbortSignal;
  /** Call it right after opening: `scope.defer(() => sandbox.close())`. Runs once; a throw is logged, the rest runs. */
  defer(close: () => void | Promise<void>): void;
}
