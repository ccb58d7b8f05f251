import type { Goal } from "../goal.js";
import { firstCommand } from "./c1-first-command.js";
import { door } from "./d1-door.js";
import { dispatch } from "./g06-dispatch.js";
import { codeTool } from "./g07-code-tool.js";
import { refusal } from "./g08-refusal.js";
import { plan } from "./g09-plan.js";
import { runsAtEight } from "./g14-runs-at-eight.js";
import { start } from "./g15-start.js";
import { agentTurns, turns } from "./turns.js";

/** Those that are open, and those that compare with others. */
export const goals: readonly Goal[] = [
  turns,
  agentTurns,
  dispatch,
  codeTool,
  refusal,
  plan,
  runsAtEight,
  start,
  door,
  firstCommand,
];
