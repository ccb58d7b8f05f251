import type { Goal } from "../goal.js";
import { coldAgents, confinedAgents } from "./agents/a01-cold-run.js";
import { warmAgents } from "./agents/a03-warm-turn.js";
import { agentTools } from "./agents/a05-tool-turn.js";
import { agentChunks } from "./agents/a11-events.js";
import { agentMemory, agentsAtEight } from "./agents/a13-at-eight.js";
import { cancelledAgents } from "./agents/a19-cancel.js";
import { agentsAhead } from "./agents/a20-agents-ahead.js";
import { agentsInDocker } from "./agents/i9-docker.js";
import { events } from "./events/g10-events.js";
import { agentEvents } from "./events/g11-agent-events.js";
import { unreadStream } from "./events/g12-unread-stream.js";
import { memoryAtEight } from "./load/g13-memory-at-eight.js";
import { runsAtEight } from "./load/g14-runs-at-eight.js";
import { start } from "./load/g15-start.js";
import { refusal } from "./planning/g08-refusal.js";
import { plan } from "./planning/g09-plan.js";
import { environment } from "./runs/e1-environment.js";
import { environmentLayer } from "./runs/e2-layer.js";
import { coldRun, coldRunCpu } from "./runs/g01-cold-run.js";
import { warmTurn } from "./runs/g03-warm-turn.js";
import { firstLine } from "./runs/g04-first-line.js";
import { toolTurn } from "./runs/g05-tool-turn.js";
import { dispatch } from "./runs/g06-dispatch.js";
import { clientGone } from "./runs/g17-client-gone.js";
import { brokenAgent } from "./runs/g18-broken-agent.js";
import { coldRunOfPeers } from "./runs/p1-cold-run-peers.js";
import { firstCommand } from "./sandboxes/c1-first-command.js";
import { codeTool } from "./sandboxes/g07-code-tool.js";
import { jail } from "./sandboxes/g16-jail.js";
import { spawnInJail } from "./sandboxes/i3-spawn.js";
import { docker } from "./sandboxes/i8-docker.js";
import { pods } from "./sandboxes/k1-pods.js";

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
  environment,
  environmentLayer,
  firstCommand,
  coldRunOfPeers,
  spawnInJail,
  coldAgents,
  confinedAgents,
  warmAgents,
  agentTools,
  agentChunks,
  agentMemory,
  agentsAtEight,
  cancelledAgents,
  agentsAhead,
  docker,
  agentsInDocker,
  pods,
];
