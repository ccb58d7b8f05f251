import type { Goal } from "../goal.js";
import { coldRun, coldRunCpu } from "./g01-cold-run.js";
import { warmTurn } from "./g03-warm-turn.js";
import { firstLine } from "./g04-first-line.js";
import { toolTurn } from "./g05-tool-turn.js";
import { dispatch } from "./g06-dispatch.js";
import { codeTool } from "./g07-code-tool.js";
import { refusal } from "./g08-refusal.js";
import { plan } from "./g09-plan.js";
import { events } from "./g10-events.js";
import { agentEvents } from "./g11-agent-events.js";
import { unreadStream } from "./g12-unread-stream.js";
import { memoryAtEight } from "./g13-memory-at-eight.js";
import { runsAtEight } from "./g14-runs-at-eight.js";
import { start } from "./g15-start.js";
import { jail } from "./g16-jail.js";
import { clientGone } from "./g17-client-gone.js";
import { brokenAgent } from "./g18-broken-agent.js";
import { spawnInJail } from "./i3-spawn.js";
import { bridge } from "./i4-bridge.js";
import { daytonaBridge } from "./i5-daytona.js";

/** In the order of their numbers. */
export const goals: readonly Goal[] = [
  coldRun,
  coldRunCpu,
  warmTurn,
  firstLine,
  toolTurn,
  dispatch,
  codeTool,
  refusal,
  plan,
  events,
  agentEvents,
  unreadStream,
  memoryAtEight,
  runsAtEight,
  start,
  jail,
  clientGone,
  brokenAgent,
  spawnInJail,
  bridge,
  daytonaBridge,
];
