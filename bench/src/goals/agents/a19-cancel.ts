import { randomUUID } from "node:crypto";
import type { RealAgent } from "../../floors/driver-messages.js";
import type { Goal, GoalMeasurement } from "../../goal.js";
import { type HttpCaller, linesOf } from "../../http.js";
import { eachAgent, installedAgents } from "./each-agent.js";

interface Moment {
  readonly what: string;
  readonly prompt: string;
  /** The event after which the run is cancelled. */
  readonly event: string;
  readonly more?: object;
}

const moments: readonly Moment[] = [
  { what: "during a response", prompt: "[[slow 500 20]]", event: "message_delta" },
  { what: "during a tool call", prompt: "[[shell sleep 100]]", event: "tool_call" },
  {
    what: "with a question open",
    prompt: "[[shell mkdir other]]",
    event: "interaction_request",
    more: {
      permissions: { default: "allow", rules: [{ pattern: "shell(mkdir:*)", permission: "ask" }] },
      interactions: { waitMs: 60_000 },
    },
  },
];

/** Codex doesn't ask before it uses its own tools. */
const momentsOf = (agent: RealAgent) => moments.filter(({ more }) => more === undefined || agent !== "codex");

export const cancelledAgents: Goal = {
  id: "A19",
  title: "cancel, with real agents: POST /runs/{id}/cancel until the run's result",
  goal: "≤ 100 ms",
  needs: [installedAgents],
  run: (options) =>
    eachAgent(options, async ({ ambit, request }, agent) => {
      const measured: GoalMeasurement[] = [];
      for (const { what, prompt, event, more } of momentsOf(agent)) {
        const values: number[] = [];
        for (let time = -1; time < options.pairs(10); time += 1) {
          const runId = randomUUID();
          const body = request(prompt, { sessionId: `bench-${agent}`, runId, ...more });
          const took = await untilCancelled(ambit.caller, body, runId, event);
          if (time >= 0) values.push(took);
        }
        measured.push({ what: `${agent}, ${what}`, unit: "ms", values, limit: { atMost: 100 } });
      }
      return measured;
    }),
};

async function untilCancelled(
  caller: HttpCaller,
  body: string,
  runId: string,
  event: string,
): Promise<number> {
  let begun: number | undefined;
  let last = "";
  for await (const line of linesOf(await caller.open("/run", body, "application/x-ndjson"))) {
    last = line;
    if (begun !== undefined || !line.includes(`"type":"${event}"`)) continue;
    begun = performance.now();
    void caller.post(`/runs/${runId}/cancel`, "{}");
  }
  const ended = performance.now();
  if (begun === undefined || !last.includes('"stopReason":"cancelled"'))
    throw new Error(`the run wasn't cancelled: ${last.slice(0, 500)}`);
  return ended - begun;
}
