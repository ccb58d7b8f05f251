import { fileURLToPath } from "node:url";
import type { Goal } from "../goal.js";
import { type HttpCaller, linesOf } from "../http.js";
import { interleaved, mediansOf } from "../measure.js";
import { startAmbit } from "../subjects/server/ambit-server.js";
import { demoRequest } from "../subjects/server/requests.js";

/** A door costs its client next to nothing: it follows the same log. Both sides are the same warm turns of a session. */
export const door: Goal = {
  id: "D1",
  title: "first chunk through a door ÷ first NDJSON line",
  goal: "≤ 1.3",
  needs: [],
  async run({ pairs }) {
    const use = fileURLToPath(import.meta.resolve("@ambit/door-ai-sdk"));
    const config = { request: { harness: "demo", permissions: { default: "allow" } } };
    await using ambit = await startAmbit({ plugins: [{ use, config }] });
    // What the door asks for as well: to take the place of a run that its user has left.
    const plain = demoRequest("say hello", { sessionId: "plain", whenBusy: "interrupt" });
    const parts = [{ type: "text", text: "say hello" }];
    const chat = JSON.stringify({ id: "chat", messages: [{ id: "m", role: "user", parts }] });
    const measurements = [];
    for (const [what, word] of [
      ["first chunk through a door ÷ first NDJSON line", "{"],
      ["the agent's first word through a door ÷ in NDJSON", "hello"],
    ] as const) {
      const measured = await interleaved(
        () => untilFirst(ambit.caller, "/ai-sdk/chat", chat, word),
        () => untilFirst(ambit.caller, "/stream", plain, word),
        { pairs: pairs(60), warmUp: 10 },
      );
      const limit = { atMost: 1.3 };
      measurements.push({
        what,
        unit: "×" as const,
        values: measured.ratios,
        limit,
        note: mediansOf(measured, "ms"),
      });
    }
    return measurements;
  },
};

/** Until the first line with this text. Reads the run to its end, so that it is finished before the next measurement. */
async function untilFirst(caller: HttpCaller, path: string, body: string, word: string): Promise<number> {
  const beganAtMs = performance.now();
  let first: number | undefined;
  let last = "";
  for await (const line of linesOf(await caller.open(path, body, "application/x-ndjson"))) {
    if (line.includes(word)) first ??= performance.now() - beganAtMs;
    last = line;
  }
  if (first === undefined || !/"ok":true|"finishReason":"stop"/.test(last))
    throw new Error(`the run failed: ${last.slice(0, 300)}`);
  return first;
}
