import type { HealthResponse, ReadyResponse, StalledResponse } from "../route-schemas.js";

/** What the server says of itself. */
export interface ServerState {
  readonly probing: boolean;
  readonly replicaId: string;
  readonly ready: ReadyResponse;
}

/** A response as JSON. */
export interface HealthAnswer {
  readonly status: 200 | 503;
  readonly body: HealthResponse | StalledResponse | ReadyResponse;
}

/**
 * `GET /health`: the process lives, and its event loop turns. Pure.
 * @param stalledForMs how long it hasn't turned, where that is longer than allowed.
 */
export function healthAnswer(
  { probing, replicaId }: Pick<ServerState, "probing" | "replicaId">,
  stalledForMs?: number,
): HealthAnswer {
  if (stalledForMs === undefined) return { status: 200, body: { status: "ok", probing, replicaId } };
  return { status: 503, body: { status: "stalled", stalledForMs, replicaId } };
}

/** `GET /ready`: the server takes runs now. Pure. @param stalledForMs as for {@link healthAnswer}. */
export function readyAnswer(ready: ReadyResponse, stalledForMs?: number): HealthAnswer {
  const body: ReadyResponse = stalledForMs === undefined ? ready : { ...ready, status: "stalled" };
  return { status: body.status === "ready" ? 200 : 503, body };
}
