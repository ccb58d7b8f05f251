/** Milliseconds before a stream that the server ended is opened again. */
const pauseMs = { min: 1_000, max: 60_000 };

/**
 * When a stream is opened again, whatever pause its server asks for: without one, it could end each stream at once, and the
 * client would do nothing else. A timer takes less than 25 days.
 *
 * @returns what cancels it
 */
export function reconnectLater(reconnect: () => void, askedMs: number): () => void {
  const timer = setTimeout(reconnect, reconnectionPause(askedMs)).unref();
  return () => clearTimeout(timer);
}

/** Pure. */
export function reconnectionPause(askedMs: number): number {
  return Math.max(pauseMs.min, Math.min(askedMs, pauseMs.max));
}
