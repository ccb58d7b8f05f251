import type { Goal } from "../goal.js";
import type { HttpCaller } from "../http.js";
import { interleaved, mediansOf, timedEach } from "../measure.js";
import { startAmbit } from "../subjects/server/ambit-server.js";
import { startBareServer, startValidatingServer } from "../subjects/server/bare-server.js";
import { demoRequest, toolCallback, usualTool } from "../subjects/server/requests.js";

const callsPerSample = 50;
const limit = { atMost: 2 } as const;
/** A callback is posted from the runner, and this boundary lists no destination. */
const refused = {
  sandboxPermission: { network: "off" },
  toolCallback: toolCallback("http://127.0.0.1:9/tools"),
  customTools: [usualTool(0)],
};

/** A refusal is nearly free, even with a thousand tools. */
export const refusal: Goal = {
  id: "G8",
  title: "refusal ÷ that of a server that only validates; with 1,000 tools",
  goal: "≤ 2; ≤ 2",
  needs: [],
  async run({ pairs }) {
    await using ambit = await startAmbit();
    await using bare = await startBareServer();
    await using validating = await startValidatingServer();
    const small = demoRequest("say hello", refused);
    const large = demoRequest("say hello", {
      ...refused,
      // All but one are client tools, which no boundary refuses.
      customTools: Array.from({ length: 1_000 }, (_, index) =>
        usualTool(index, index === 0 ? "callback" : "client"),
      ),
    });
    const validated = (body: string, calls: number) =>
      interleaved(
        () => perCall(calls, () => refuse(ambit.caller, body)),
        () => perCall(calls, () => refuse(validating.caller, body)),
        { pairs: pairs(60), warmUp: 20 },
      );
    const [smallest, largest] = [await validated(small, callsPerSample), await validated(large, 5)];
    const refusals = await interleaved(
      () => perCall(callsPerSample, () => refuse(ambit.caller, small)),
      () => perCall(callsPerSample, () => bare.caller.post("/", small)),
      { pairs: pairs(60), warmUp: 20 },
    );
    const withTools = await interleaved(
      () => perCall(5, () => refuse(ambit.caller, large)),
      () => timedEach(5, () => JSON.parse(large)),
      { pairs: pairs(60), warmUp: 20 },
    );
    const transfer = await interleaved(
      () => perCall(5, () => refuse(ambit.caller, large)),
      () => perCall(5, () => bare.caller.post("/", large)),
      { pairs: pairs(20), warmUp: 2 },
    );
    const size = `${Math.round(large.length / 1024)} KiB`;
    return [
      {
        what: "boundary refused ÷ refused by Hono with the same schema",
        unit: "×",
        values: smallest.ratios,
        limit,
        note: mediansOf(smallest, "ms"),
      },
      {
        what: `the same with 1,000 tools (${size})`,
        unit: "×",
        values: largest.ratios,
        limit,
        note: mediansOf(largest, "ms"),
      },
      {
        what: "boundary refused ÷ raw POST, which parses nothing",
        unit: "×",
        values: refusals.ratios,
        note: mediansOf(refusals, "ms"),
      },
      {
        what: "with 1,000 tools, over HTTP ÷ JSON.parse of it",
        unit: "×",
        values: withTools.ratios,
        note: mediansOf(withTools, "ms"),
      },
      {
        what: "with 1,000 tools ÷ raw POST of it, which parses nothing",
        unit: "×",
        values: transfer.ratios,
        note: mediansOf(transfer, "ms"),
      },
    ];
  },
};

async function refuse(caller: HttpCaller, body: string): Promise<void> {
  const { status, text } = await caller.post("/run", body);
  if (status !== 422) throw new Error(`expected a refusal, got ${status}: ${text.slice(0, 300)}`);
}

async function perCall(calls: number, call: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  for (let index = 0; index < calls; index += 1) await call();
  return (performance.now() - begun) / calls;
}
