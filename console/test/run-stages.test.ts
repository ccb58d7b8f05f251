import type { AgentEvent } from "@ambit/client";
import { describe, expect, it } from "vitest";
import { RunStages } from "../src/server/run-stages.js";

const iso = (second: number) => new Date(second).toISOString();
const stage = (name: string, at: number, progress: object = {}): AgentEvent => ({
  type: "data",
  name: "stage",
  data: { stage: name, at: iso(at), ...progress },
  transient: true,
});
const began: AgentEvent = { type: "data", name: "run", data: {} };
const said: AgentEvent = { type: "message", text: "hello" };
const done: AgentEvent = { type: "done", stopReason: "end_turn" };

/** The stages of a run with one event in each second. */
function stagesOf(events: readonly AgentEvent[]): RunStages {
  const stages = new RunStages();
  for (const [second, event] of events.entries()) stages.read(event, second);
  return stages;
}

const shown = (stages: RunStages) =>
  stages.all.map(
    ({ name, beganAt, endedAt, depth }) => `${depth === 1 ? "· " : ""}${name} ${beganAt}–${endedAt ?? ""}`,
  );

describe("a run's stages", () => {
  it.each<[string, readonly AgentEvent[], readonly string[], string | undefined]>([
    [
      "is quick",
      [began],
      ["Preparing 0–"],
      "Preparing: opens the sandbox, fills the workspace and starts the agent",
    ],
    [
      "opens its sandbox for long",
      [began, stage("opening", 0)],
      ["Preparing 0–0", "Opening the sandbox 0–"],
      "Opening the sandbox",
    ],
    [
      "clones",
      [began, stage("filling", 0), stage("filling", 0, { source: 0, percent: 40 })],
      ["Preparing 0–0", "Filling the workspace 0–"],
      "Filling the workspace: 40 % received",
    ],
    [
      "is of a later server",
      [began, stage("dreaming", 1)],
      ["Preparing 0–"],
      expect.stringMatching(/^Preparing/),
    ],
    [
      "starts the agent",
      [began, stage("starting", 0), said],
      ["Preparing 0–0", "Starting the agent 0–2", "Agent 2–"],
      undefined,
    ],
    ["is at work", [began, said, said], ["Preparing 0–1", "Agent 1–"], undefined],
    [
      "collects its outputs for long",
      [began, said, stage("collecting", 2)],
      ["Preparing 0–1", "Agent 1–2", "Collecting the outputs 2–"],
      "Collecting the outputs",
    ],
    [
      "has ended",
      [began, said, said, { type: "file", url: "/a", mediaType: "a/b" }, done],
      ["Preparing 0–1", "Agent 1–2", "Finishing 2–4"],
      undefined,
    ],
    ["failed before the agent began", [began, done], ["Preparing 0–1"], expect.stringMatching(/^Preparing/)],
  ])("where it %s", (_what, events, all, current) => {
    const stages = stagesOf(events);
    expect(shown(stages)).toEqual(all);
    expect(stages.current).toEqual(current);
  });

  it("are those of its receipt once it has ended, with the requests to its model", () => {
    const stages = stagesOf([began, said, done]);
    const receipt = (["opening", "filling", "starting", "model", "streaming", "closing"] as const).map(
      (name, second) => ({ name, at: iso(second), durationMs: name === "closing" ? 0 : 1 }),
    );
    stages.conclude({ stages: receipt });
    expect(shown(stages)).toEqual([
      "Opening the sandbox 0–1",
      "Filling the workspace 1–2",
      "Starting the agent 2–3",
      "· Model 3–4",
      "Agent 4–5",
    ]);
  });
});
