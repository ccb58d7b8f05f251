import { HttpCaller } from "../http.js";
import { count, type LoadAttack, repeatedly } from "./attack.js";
import type { Instruction } from "./hostile-agent.js";
import { hostileRequest, readRun } from "./runs.js";

/** Agents at one time. */
const agents = 8;

/** Messages just below the limits, from several agents at once. */
function messagesOf(instruction: Instruction & { readonly messages: number }): LoadAttack {
  return {
    run: async (target, tally, signal) => {
      const caller = new HttpCaller(target.url, target.token);
      const step = async () => {
        const last = await readRun(caller, hostileRequest(instruction), tally, signal);
        if (!last.includes('"ok":true')) throw new Error(last);
        count(tally, "messages", instruction.messages);
      };
      await repeatedly(agents, step, tally, signal);
      caller.close();
    },
  };
}

export const agentValues = messagesOf({ attack: "values", messages: 30, values: 45_000 });
export const agentTexts = messagesOf({ attack: "texts", messages: 9, characters: 7_500_000 });
