import type { AgentEvent } from "@ambit/client";
import { describe, expect, it } from "vitest";
import { RunStages } from "../src/server/run-stages.js";

const setup = (data: object): AgentEvent => ({ type: "data", name: "setup", data });
const began: AgentEvent = { type: "data", name: "run", data: {} };
const said: AgentEvent = { type: "message", text: "hello" };
const done: AgentEvent = { type: "done", stopReason: "end_turn" };

/** The stages of a run with one event in each second. */
function stagesOf(...events: readonly AgentEvent[]) {
  const stages = new RunStages();
  for (const [second, event] of events.entries()) stages.read(event, second);
  const all = stages.all.map(({ name, beganAt, endedAt }) => `${name} ${beganAt}–${endedAt ?? ""}`);
  return { all, preparation: stages.preparation };
}

describe("a run's stages", () => {
  it.each([
    ["opens the sandbox", [began], ["Preparing 0–"], /^Preparing: opens the sandbox/],
    [
      "waits for another's setup",
      [began, setup({ state: "waiting" })],
      ["Preparing 0–1", "Waiting for another run's setup 1–"],
      /^Waiting for another/,
    ],
    [
      "sets up",
      [began, setup({ state: "started", command: "npm ci" }), setup({ state: "output", text: "…" })],
      ["Preparing 0–1", "Setting up: npm ci 1–"],
      /^Setting up: npm ci$/,
    ],
    [
      "starts the agent",
      [began, setup({ state: "started", command: "npm ci" }), setup({ state: "ended" })],
      ["Preparing 0–1", "Setting up: npm ci 1–2", "Starting the agent 2–"],
      /^Starting the agent$/,
    ],
    ["is at work", [began, said, said], ["Preparing 0–1", "Agent 1–"], undefined],
    [
      "has ended",
      [began, said, said, { type: "file", url: "/a", mediaType: "a/b" }, done],
      ["Preparing 0–1", "Agent 1–2", "Finishing 2–4"],
      undefined,
    ],
    ["failed before the agent began", [began, done], ["Preparing 0–1"], /^Preparing/],
  ] as const)("where it %s", (_what, events, all, preparation) => {
    const stages = stagesOf(...events);
    expect(stages.all).toEqual(all);
    if (preparation === undefined) expect(stages.preparation).toBeUndefined();
    else expect(stages.preparation).toMatch(preparation);
  });
});
