import type { IncomingMessage } from "node:http";
import { z } from "zod";
import { type HttpCaller, linesOf } from "../../http.js";

/** One run, to its end. @throws Error when it failed. */
export async function run(caller: HttpCaller, body: string): Promise<void> {
  const { text } = await caller.post("/run", body);
  if (!text.startsWith('{"ok":true')) throw new Error(`the run failed: ${text.slice(0, 500)}`);
}

const runSchema = z.object({
  events: z.array(
    z.looseObject({ type: z.string(), isError: z.boolean().optional(), output: z.unknown().optional() }),
  ),
  receipt: z.object({ decisions: z.object({ allowed: z.number(), refused: z.number() }) }),
});

/**
 * One run in which every call of the agent must succeed. A script continues after a failed call, and a failed call is
 * fast, so it would distort the measurement.
 *
 * @param connections the number that must have passed through the boundary's proxy.
 */
export async function runWorking(
  caller: HttpCaller,
  body: string,
  calls: number,
  connections: number,
): Promise<void> {
  const { text } = await caller.post("/run", body);
  if (!text.startsWith('{"ok":true')) throw new Error(`the run failed: ${text.slice(0, 500)}`);
  const { events, receipt } = runSchema.parse(JSON.parse(text));
  const results = events.filter(({ type }) => type === "tool_result");
  const broken = results.find(({ isError }) => isError === true);
  if (broken !== undefined) throw new Error(`a call of the agent failed: ${JSON.stringify(broken.output)}`);
  if (results.length !== calls) throw new Error(`${results.length} of ${calls} calls were made`);
  const { allowed } = receipt.decisions;
  if (allowed < connections)
    throw new Error(`${allowed} connections went through the proxy, not ${connections}`);
}

export interface StreamFigures {
  /** Milliseconds from the first `message_delta` to the result. */
  readonly sinceFirstDeltaMs: number;
  readonly deltas: number;
  /** Successful tool calls; a failed one is an error. */
  readonly results: number;
  /** Milliseconds from the first event of a tool call to the last. */
  readonly toolsMs: number;
}

/** One run, measured from its caller's view. @throws Error when it failed. */
export async function watchRun(caller: HttpCaller, body: string, path = "/run"): Promise<StreamFigures> {
  let deltas = 0;
  let firstDelta = 0;
  let firstTool = 0;
  let lastTool = 0;
  let results = 0;
  let last = "";
  for await (const line of linesOf(await caller.open(path, body, "application/x-ndjson"))) {
    last = line;
    if (line.includes('"type":"message_delta"')) {
      if (deltas === 0) firstDelta = performance.now();
      deltas += 1;
    } else if (line.includes('"type":"tool_')) {
      lastTool = performance.now();
      if (firstTool === 0) firstTool = lastTool;
      if (line.includes('"isError":true'))
        throw new Error(`a call of the agent failed: ${line.slice(0, 500)}`);
      if (line.includes('"type":"tool_result"')) results += 1;
    }
  }
  if (!last.includes('"result":{"ok":true')) throw new Error(`the run failed: ${last.slice(0, 500)}`);
  return {
    sinceFirstDeltaMs: performance.now() - firstDelta,
    deltas,
    results,
    toolsMs: lastTool - firstTool,
  };
}

/** Resolves when a line of the response contains the text; the rest stays unread. */
export async function untilLine(response: IncomingMessage, text: string): Promise<void> {
  response.setEncoding("utf8");
  let seen = "";
  await new Promise<void>((resolve, reject) => {
    const look = (chunk: string) => {
      seen = (seen + chunk).slice(-10_000);
      if (seen.includes(text)) {
        response.off("data", look);
        resolve();
      }
    };
    response.on("data", look);
    response.on("end", () => reject(new Error(`the run ended early: ${seen.slice(-500)}`)));
    response.on("error", reject);
  });
}
