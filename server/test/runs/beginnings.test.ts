import { AtCapacity } from "@ambit/core";
import { describe, expect, it } from "vitest";
import { nextStep, type RequestFacts } from "../../src/http/runs/beginnings.js";

type Facts = Omit<RequestFacts<string, string, string>, "isDetached" | "isNamed">;

const refusal = new AtCapacity("no slot is free");
const same = { run: "first", isOfSameRequest: true };
const other = { run: "first", isOfSameRequest: false };

const rows: readonly {
  readonly facts: Facts;
  /** For a caller that waits for the result, and for one that only wants its address. */
  readonly attached: object;
  readonly detached: object;
}[] = [
  { facts: {}, attached: { step: "look_up" }, detached: { step: "look_up" } },
  {
    facts: { existing: same },
    attached: { step: "respond_existing", run: "first" },
    detached: { step: "respond_existing", run: "first" },
  },
  { facts: { existing: other }, attached: { step: "refuse_key" }, detached: { step: "refuse_key" } },
  {
    facts: { existing: "none" },
    attached: { step: "check_capacity" },
    detached: { step: "check_capacity" },
  },
  {
    facts: { existing: "none", capacity: "free" },
    attached: { step: "start" },
    detached: { step: "start" },
  },
  {
    facts: { existing: "none", capacity: refusal },
    attached: { step: "refuse_capacity", refusal },
    detached: { step: "queue" },
  },
  {
    facts: { existing: "none", capacity: "free", attempt: { outcome: "over_quota", sessionId: "s" } },
    attached: { step: "refuse_quota", sessionId: "s" },
    detached: { step: "queue" },
  },
  {
    facts: { existing: "none", capacity: "free", attempt: { outcome: "running", run: "mine" } },
    attached: { step: "begin", run: "mine" },
    detached: { step: "begin", run: "mine" },
  },
  {
    facts: { existing: "none", capacity: "free", attempt: { outcome: "session_busy" } },
    attached: { step: "queue" },
    detached: { step: "queue" },
  },
  {
    facts: { existing: "none", capacity: "free", attempt: { outcome: "queued", run: "q" } },
    attached: { step: "follow_queued", run: "q" },
    detached: { step: "accept_queued", run: "q" },
  },
  // Another replica created a run of the same id after the look-up.
  {
    facts: { existing: same, capacity: "free" },
    attached: { step: "respond_existing", run: "first" },
    detached: { step: "respond_existing", run: "first" },
  },
];

describe("a request for a run", () => {
  it.each(rows)("that knows $facts goes on with $attached, detached with $detached", (row) => {
    expect(nextStep({ ...row.facts, isDetached: false, isNamed: true })).toEqual(row.attached);
    expect(nextStep({ ...row.facts, isDetached: true, isNamed: true })).toEqual(row.detached);
  });

  it("whose body has the id of another run is refused, also with the same content", () => {
    for (const existing of [same, other])
      for (const isDetached of [true, false])
        expect(nextStep({ isDetached, isNamed: false, existing })).toEqual({ step: "refuse_id" });
  });
});
