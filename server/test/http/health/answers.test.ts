import { expect, it } from "vitest";
import { healthAnswer, readyAnswer } from "../../../src/http/health/answers.js";
import { readyResponseSchema, stalledResponseSchema } from "../../../src/http/route-schemas.js";

const replicaId = "one";

it("a server is healthy until its event loop is blocked for too long", () => {
  expect(healthAnswer({ probing: true, replicaId })).toEqual({
    status: 200,
    body: { status: "ok", probing: true, replicaId },
  });
  const stalled = healthAnswer({ probing: true, replicaId }, 12_000);
  expect(stalled).toEqual({ status: 503, body: { status: "stalled", stalledForMs: 12_000, replicaId } });
  expect(stalledResponseSchema.safeParse(stalled.body).success).toBe(true);
});

it.each([
  ["ready", "reachable", undefined, 200, "ready"],
  ["ready", "none", undefined, 200, "ready"],
  ["starting", "opening", undefined, 503, "starting"],
  ["unavailable", "unreachable", undefined, 503, "unavailable"],
  ["draining", "reachable", undefined, 503, "draining"],
  ["ready", "reachable", 12_000, 503, "stalled"],
  ["draining", "reachable", 12_000, 503, "stalled"],
] as const)(
  "%s, with a store that is %s, stalled for %s: %i %s",
  (status, store, stalledForMs, code, shown) => {
    const answer = readyAnswer({ status, store }, stalledForMs);
    expect(answer).toEqual({ status: code, body: { status: shown, store } });
    expect(readyResponseSchema.safeParse(answer.body).success).toBe(true);
  },
);
