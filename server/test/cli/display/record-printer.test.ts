import { PassThrough } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import { type AgentEvent, eventRecord } from "@ambit/core/contract";
import { expect, it, onTestFinished, vi } from "vitest";
import { Progress } from "../../../src/cli/display/progress.js";
import { printerFor } from "../../../src/cli/display/record-printer.js";

it("shows when events happened, not when a stored run is read", async () => {
  const output = new PassThrough();
  const printer = printerFor({ timeline: true }, output);
  const began = Date.parse("2026-01-01T00:00:00Z");
  await printer.event(eventRecord({ type: "data", name: "run", data: {} }, began));
  await printer.event(eventRecord({ type: "message", text: "late" }, began + 75_000));
  await printer.result({ ok: true, runId: "r", events: [] });
  output.end();
  const text = stripVTControlCharacters((await output.toArray()).join(""));
  expect(text).toMatch(/^ +75\.00 s +says +late$/m);
});

it("says what a run is busy with before and after its agent's turn", async () => {
  vi.stubEnv("TERM", "xterm");
  onTestFinished(() => void vi.unstubAllEnvs());
  const written: string[] = [];
  let now = 0;
  let tick = () => {};
  const clock = {
    now: () => now,
    every: (_ms: number, callback: () => void) => {
      tick = callback;
      return () => {
        tick = () => {};
      };
    },
  };
  const terminal = { isTTY: true, columns: 80, write: (text: string) => written.push(text) > 0 };
  const printer = printerFor({ timeline: true }, new PassThrough(), new Progress(terminal, clock));
  const shown: string[] = [];
  const happens = async (event: AgentEvent) => {
    written.length = 0;
    await printer.event(eventRecord(event, 0));
    now += 2_000;
    tick();
    shown.push(/^\S+ (.*) · \d+ s$/.exec(stripVTControlCharacters(written.at(-1) ?? "").trim())?.[1] ?? "");
  };
  const stage = (data: object): AgentEvent => ({ type: "data", name: "stage", data, transient: true });
  await happens({ type: "data", name: "run", data: {} });
  await happens(stage({ stage: "filling" }));
  await happens(stage({ stage: "filling", source: 0, percent: 40 }));
  await happens(stage({ stage: "starting" }));
  await happens({ type: "message", text: "ok" });
  await happens(stage({ stage: "collecting" }));
  expect(shown).toEqual([
    "preparing the sandbox",
    "filling the workspace",
    "filling the workspace · 40 % received",
    "starting the agent",
    "",
    "collecting the outputs",
  ]);
});
