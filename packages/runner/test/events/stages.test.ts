import type { AgentEvent } from "@ambit/core/contract";
import { says } from "@ambit/fakes/harness";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { RunStages } from "../../src/events/stages.js";
import { createWorld } from "../fakes/world.js";

const beganAt = Date.parse("2026-11-30T10:00:00.000Z");

/** The stages of a run that begins now, and what its reader learns of them, with the seconds at which it does. */
function watched() {
  const told: string[] = [];
  const stages = new RunStages((event: AgentEvent) => {
    const { stage, at, percent } = Object("data" in event ? event.data : undefined);
    const since = (Date.parse(at) - beganAt) / 1_000;
    told.push(
      [(Date.now() - beganAt) / 1_000, stage, since, ...(percent === undefined ? [] : [percent])].join(" "),
    );
  });
  return { stages, told };
}

describe("what a run is busy with", () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: beganAt });
    return () => vi.useRealTimers();
  });

  it("isn't told of a run that is quick, however long its turn is", () => {
    const { stages, told } = watched();
    for (const name of ["opening", "filling", "starting", "streaming"] as const) {
      stages.enter(name);
      vi.advanceTimersByTime(300);
    }
    vi.advanceTimersByTime(60_000);
    stages.enter("closing");
    vi.advanceTimersByTime(999);
    stages.end();
    expect(told).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
    expect(stages.ended.map(({ name, durationMs }) => [name, durationMs])).toEqual([
      ["opening", 300],
      ["filling", 300],
      ["starting", 300],
      ["streaming", 60_300],
      ["closing", 999],
    ]);
    expect(stages.ended[3]?.at).toBe("2026-11-30T10:00:00.900Z");
  });

  it("is told of one whose preparation takes longer than a second, from then on", () => {
    const { stages, told } = watched();
    stages.enter("opening");
    vi.advanceTimersByTime(400);
    stages.enter("filling");
    stages.advance({ source: 0, percent: 1 });
    vi.advanceTimersByTime(1_000);
    stages.advance({ source: 0, percent: 10 });
    vi.advanceTimersByTime(600);
    for (const percent of [39, 40, 41]) stages.advance({ source: 0, percent });
    vi.advanceTimersByTime(500);
    stages.enter("starting");
    stages.enter("streaming");
    vi.advanceTimersByTime(5_000);
    stages.enter("collecting");
    vi.advanceTimersByTime(2_000);
    stages.enter("closing");
    stages.end();
    expect(told).toEqual([
      "1 filling 0.4",
      "2 filling 0.4 39",
      "2.5 starting 2.5",
      "8.5 collecting 7.5",
      "9.5 closing 9.5",
    ]);
  });

  it("is told, and timed, whatever the machine's clock is set to meanwhile", () => {
    const { stages, told } = watched();
    stages.enter("filling");
    vi.advanceTimersByTime(1_000);
    vi.setSystemTime(beganAt - 3_600_000);
    vi.advanceTimersByTime(1_000);
    stages.advance({ source: 0, percent: 10 });
    stages.end();
    expect(told).toEqual(["1 filling 0", "-3599 filling 0 10"]);
    expect(stages.ended).toEqual([{ name: "filling", at: "2026-11-30T10:00:00.000Z", durationMs: 2_000 }]);
  });

  it("has the latest 200 requests to the model", () => {
    const { stages } = watched();
    stages.enter("streaming");
    for (let at = 0; at < 250; at += 1) {
      const ended = stages.askModel();
      vi.advanceTimersByTime(1_000);
      ended();
    }
    stages.end();
    expect(stages.ended).toHaveLength(201);
    expect(stages.ended[0]).toEqual({ name: "model", at: "2026-11-30T10:00:50.000Z", durationMs: 1_000 });
    expect(stages.ended.at(-1)?.name).toBe("streaming");
  });
});

it("is on the receipt of a run", async () => {
  const world = await createWorld({ script: says("ok") });
  const { result } = await world.run({});
  const names = result.receipt?.stages?.map(({ name }) => name);
  expect(names).toEqual(["opening", "filling", "starting", "streaming", "closing"]);
});
