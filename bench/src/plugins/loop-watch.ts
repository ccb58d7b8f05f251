/**
 * A plugin that the soak loads into a real server, to record how long its event loop is busy at a stretch. It acts in no
 * run.
 */
import { appendFileSync, readFileSync } from "node:fs";
import { definePlugin } from "@ambit/core/plugin";
import { z } from "zod";

const writeEveryMs = 500;
const lookEveryMs = 5;
const nanosecondsPerMs = 1e6;

/** Milliseconds of the event loop's thread: its CPU, and how long it was ready and waited for a processor. */
function ofThread(): { readonly cpu: number; readonly waited: number } {
  const [cpu = 0, waited = 0] = readFileSync(`/proc/self/task/${process.pid}/schedstat`, "latin1")
    .split(" ")
    .map((nanoseconds) => Number(nanoseconds) / nanosecondsPerMs);
  return { cpu, waited };
}

const rounded = (ms: number) => Math.round(ms * 10) / 10;

export default definePlugin({
  name: "loop-watch",
  api: 1,
  config: z.strictObject({
    /** An absolute path. Every half second a line of JSON is appended, as `soak/loop-looks.ts` reads it. */
    file: z.string(),
  }),
  register: (_registrar, { file }) => {
    let looks: number[][] = [];
    let due = performance.now() + lookEveryMs;
    let last = ofThread();
    // A timer fires at most once in a turn of the loop: between two looks is one turn, or lookEveryMs.
    setInterval(() => {
      const begun = performance.now();
      const now = ofThread();
      looks.push([begun - due, now.cpu - last.cpu, now.waited - last.waited].map(rounded));
      last = now;
      due = begun + lookEveryMs;
    }, lookEveryMs).unref();
    setInterval(() => {
      appendFileSync(file, `${JSON.stringify({ at: Date.now(), looks })}\n`);
      looks = [];
    }, writeEveryMs).unref();
  },
});
