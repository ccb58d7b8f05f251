import { setTimeout as pause } from "node:timers/promises";
import { type EventRecord, eventRecord, type RunResult, runRequestSchema } from "@ambit/core/contract";
import { expect, it } from "vitest";
import { type RecordedRun, Recorder, type RecorderOptions } from "../src/recorder.js";
import type { RecordGroup } from "../src/run-log.js";

const log = { debug() {}, info() {}, warn() {}, error() {} };
const result: RunResult = { ok: true, runId: "r", events: [], output: "" };

/** A run of this many messages, in parts of ten, that counts what its recorder takes. */
function messagesOf(count: number) {
  const taken = { parts: 0, ended: Promise.withResolvers<undefined>() };
  const run: RecordedRun = {
    requestCopy: undefined,
    id: "r",
    key: "r",
    request: runRequestSchema.parse({ messages: [] }),
    plan: { harness: { actor: { id: "demo" } }, sandbox: { actor: { name: "none" } } },
    recovery: { recoveries: {} },
    log,
    ended: taken.ended.promise,
    announced: () => [],
    holdBy() {},
    async *parts() {
      for (let first = 0; first < count; first += 10) {
        taken.parts += 1;
        yield { records: Array.from({ length: 10 }, (_, at) => message(first + at)) };
      }
      yield { result };
    },
    withdraw() {},
    cancel() {},
    answer() {},
  };
  return { run, taken };
}

const message = (number: number): EventRecord =>
  eventRecord({ type: "message", text: String(number) }, number);

/** A log that takes a group when the test says so. */
function slowLog() {
  const groups: RecordGroup[] = [];
  let take = () => {};
  const runLog: RecorderOptions["runLog"] = {
    append: (group) => {
      groups.push(group);
      return new Promise((resolve) => {
        take = () => resolve("written");
      });
    },
    end: async () => "written",
    runEnded() {},
    close() {},
  };
  return { runLog, groups, take: () => take() };
}

it("takes nothing from a run while its log takes nothing, and loses nothing in order", async () => {
  const { run, taken } = messagesOf(100);
  const { runLog, groups, take } = slowLog();
  const source = { id: "r", project: undefined, session: undefined, webhook: undefined };
  const recorder = new Recorder({ run, runLog, source, fence: 1, isAnnounced: false, log });
  await expect.poll(() => groups.length).toBe(1);
  // Time in which a recorder with a buffer of its own would take more.
  await pause(20);
  expect(taken.parts).toBe(1);
  for (let group = 2; group <= 10; group += 1) {
    take();
    await expect.poll(() => groups.length).toBe(group);
  }
  take();
  expect(await recorder.done).toEqual(result);
  const lines = groups.flatMap(({ text }) => text.trimEnd().split("\n"));
  expect(lines.map((line) => JSON.parse(line).event.text)).toEqual(
    Array.from({ length: 100 }, (_, number) => String(number)),
  );
});
