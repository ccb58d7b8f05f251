/** Owns lifetimes: what was opened in it is closed with it, in reverse. */
export interface Scope {
  /** Aborts when the scope begins to close, with the reason: cancelled, timed out, failed. */
  readonly signal: AbortSignal;
  /** Stands beside the open: `scope.defer(() => sandbox.close())`. Runs once; a throw is logged, the rest still runs. */
  defer(close: () => void | Promise<void>): void;
}
