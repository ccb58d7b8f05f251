import { describe, expect, it } from "vitest";
import { whyFull } from "../../../src/http/runs/run-queue.js";

const limits = { queuedRuns: 4, queuedBytes: 100 };
const queued = (queuedRuns: number, queuedBytes: number) => ({ queuedRuns, queuedBytes });

describe("a queue", () => {
  it.each([
    ["has room for the last run", queued(3, 0), undefined, 10, undefined],
    ["has as many runs as it may", queued(4, 0), undefined, 10, "4 runs are already queued."],
    [
      "has fewer places left than the project has runs",
      queued(2, 0),
      queued(2, 0),
      10,
      "2 runs of the project",
    ],
    ["has a place more than the project has runs", queued(2, 0), queued(1, 0), 10, undefined],
    ["has room for just this request", queued(1, 60), undefined, 40, undefined],
    ["has too little room for the request", queued(1, 60), undefined, 41, "The requests of queued runs"],
    [
      "has less room left than the project's requests take",
      queued(1, 40),
      queued(1, 40),
      21,
      "The requests of the project",
    ],
    ["has as much room left as the project's requests take", queued(1, 40), queued(1, 40), 20, undefined],
  ] as const)("that %s", (_case, all, own, added, why) => {
    const full = whyFull({ all, own, added }, limits);
    if (why === undefined) expect(full).toBeUndefined();
    else expect(full).toContain(why);
  });
});
