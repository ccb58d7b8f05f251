import { setTimeout as pause } from "node:timers/promises";
import type { GoalMeasurement } from "../../goal.js";
import { type HttpCaller, linesOf } from "../../http.js";
import type { Pods } from "../../subjects/sandboxes/pods.js";
import { demoRequest } from "../../subjects/server/requests.js";

const body = demoRequest("say hello", {
  sandbox: "kubernetes",
  sandboxPermission: { network: "off", enforcement: "strict" },
});

/** From `POST /run` until the first text of an agent in a pod without a network. The agent's program is copied into the pod. */
export async function firstWords(
  on: Pods,
  count: number,
  prepareMs: number,
): Promise<readonly GoalMeasurement[]> {
  const measured: GoalMeasurement[] = [];
  for (const { prewarm, where, atMost } of [
    { prewarm: 0, where: "a new pod", atMost: 1_200 },
    { prewarm: 1, where: "a prepared pod", atMost: 500 },
  ]) {
    await using server = await on.server(prewarm);
    const values: number[] = [];
    for (let time = -1; time < count; time += 1) {
      const ms = await untilFirstText(server.caller);
      if (time >= 0) values.push(ms);
      await pause(prepareMs);
    }
    const what = `POST /run until the demo's first word, in ${where}`;
    measured.push({ what, unit: "ms", values, limit: { atMost } });
  }
  return measured;
}

/** Reads the run to its end, so that it is finished before the next measurement. */
async function untilFirstText(caller: HttpCaller): Promise<number> {
  const begun = performance.now();
  let first: number | undefined;
  let last = "";
  for await (const line of linesOf(await caller.open("/run", body, "application/x-ndjson"))) {
    if (line.includes('"type":"message')) first ??= performance.now() - begun;
    last = line;
  }
  if (first === undefined || !last.includes('"ok":true'))
    throw new Error(`the run failed: ${last.slice(0, 500)}`);
  return first;
}
