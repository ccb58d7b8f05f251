/**
 * A plugin that the soak loads into a real server, to record the delay of that server's event loop. It acts in no run.
 */
import { writeFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { definePlugin } from "@ambit/core/plugin";
import { z } from "zod";

const everyMs = 500;
const nanosecondsPerMs = 1e6;

export default definePlugin({
  name: "loop-watch",
  api: 1,
  config: z.strictObject({
    /** An absolute path. Written every half second: `{"p99Ms", "maxMs"}` since the server's start. */
    file: z.string(),
  }),
  register: (_registrar, { file }) => {
    const delay = monitorEventLoopDelay({ resolution: 10 });
    delay.enable();
    setInterval(() => {
      const p99Ms = delay.percentile(99) / nanosecondsPerMs;
      writeFileSync(file, JSON.stringify({ p99Ms, maxMs: delay.max / nanosecondsPerMs }));
    }, everyMs).unref();
  },
});
