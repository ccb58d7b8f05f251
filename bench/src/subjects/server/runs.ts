import { type HttpCaller, linesOf } from "../../http.js";

/** One run, to its end. @throws Error when it failed. */
export async function run(caller: HttpCaller, body: string): Promise<void> {
  const { text } = await caller.post("/run", body);
  if (!text.startsWith('{"ok":true')) throw new Error(`the run failed: ${text.slice(0, 500)}`);
}

export interface StreamFigures {
  readonly deltas: number;
  /** Successful tool calls; a failed one is an error. */
  readonly results: number;
  /** Milliseconds from the first event of a tool call to the last. */
  readonly toolsMs: number;
}

/** One run, measured from its caller's view. @throws Error when it failed. */
export async function watchRun(caller: HttpCaller, body: string): Promise<StreamFigures> {
  let deltas = 0;
  let firstTool = 0;
  let lastTool = 0;
  let results = 0;
  let last = "";
  for await (const line of linesOf(await caller.open("/run", body, "application/x-ndjson"))) {
    last = line;
    if (line.includes('"type":"message_delta"')) deltas += 1;
    else if (line.includes('"type":"tool_')) {
      lastTool = performance.now();
      if (firstTool === 0) firstTool = lastTool;
      if (line.includes('"isError":true'))
        throw new Error(`a call of the agent failed: ${line.slice(0, 500)}`);
      if (line.includes('"type":"tool_result"')) results += 1;
    }
  }
  if (!last.includes('"result":{"ok":true')) throw new Error(`the run failed: ${last.slice(0, 500)}`);
  return { deltas, results, toolsMs: lastTool - firstTool };
}
