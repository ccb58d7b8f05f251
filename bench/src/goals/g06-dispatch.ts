import { fileURLToPath } from "node:url";
import { z } from "zod";
import type { Goal } from "../goal.js";
import { mediansOf } from "../measure.js";
import { startAmbit } from "../subjects/server/ambit-server.js";
import { startBareServer } from "../subjects/server/bare-server.js";
import { toolCallback, usualTool } from "../subjects/server/requests.js";

/** For a configuration: an absolute path needs no installation. */
const benchPlugin = fileURLToPath(new URL("../plugins/bench-actors.js", import.meta.url));

const pairsSchema = z.object({
  ratios: z.array(z.number()),
  subject: z.array(z.number()),
  floor: z.array(z.number()),
});

/** From a tool call's arrival in the runner to its response: permission, arguments' schema, executor, outcome. */
export const dispatch: Goal = {
  id: "G6",
  title: "runner's tool dispatch ÷ direct POST",
  goal: "≤ 2",
  needs: [],
  async run({ pairs }) {
    await using ambit = await startAmbit({ plugins: [benchPlugin] });
    await using bare = await startBareServer();
    const { url } = bare.caller;
    const { text } = await ambit.caller.post(
      "/run",
      JSON.stringify({
        harness: "bench-agent",
        messages: [{ role: "user", content: `${pairs(60)} ${url}` }],
        toolCallback: toolCallback(`${url}/tools`),
        customTools: [usualTool(0)],
      }),
    );
    const result = z.object({ ok: z.boolean(), output: z.string() }).safeParse(JSON.parse(text));
    if (!result.success || !result.data.ok) throw new Error(`the run failed: ${text.slice(0, 500)}`);
    const measured = pairsSchema.parse(JSON.parse(result.data.output));
    return [
      {
        what: "tool dispatch in the runner ÷ POST with node:http",
        unit: "×",
        values: measured.ratios,
        limit: { atMost: 2 },
        note: mediansOf(measured, "ms"),
      },
    ];
  },
};
