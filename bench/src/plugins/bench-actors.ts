/**
 * A plugin that the bench loads into a real server: an agent in the server's own process, so that what is measured
 * is the runner's work and nobody else's. Its prompt is `flood N`, or `dispatch N URL`.
 */
import {
  type Agent,
  type AgentEvent,
  type ContentBlock,
  definePlugin,
  type Harness,
  type Publication,
  type PublishedServer,
  type StartScope,
  type ToolDelivery,
  type Turn,
} from "@ambit/core/plugin";
import { z } from "zod";
import { dispatched } from "./dispatched.js";

/** What was published for whom: the delivery hands tools over within the process. */
const published = new WeakMap<StartScope["sandbox"], Publication>();

const delivery: ToolDelivery = {
  name: "bench-delivery",
  site: "runner",
  claims: [],
  touches: () => [],
  gaps: () => [],
  probe: async () => [],
  publish: async (publication, scope): Promise<PublishedServer> => {
    published.set(scope.sandbox, publication);
    return { name: publication.name, url: "http://127.0.0.1:9/", headers: {}, listed: () => true };
  },
};

const harness: Harness = {
  name: "bench-agent",
  id: "bench-agent",
  aliases: [],
  site: "sandbox",
  claims: [],
  maxToolCallMs: 0,
  supportsPermissionRequests: true,
  ownTools: {},
  touches: () => [],
  gaps: () => [],
  probe: async () => [],
  issues: () => [],
  requiredPaths: () => [],
  visibleCredentials: () => [],
  start: async (scope) => agentIn(scope),
};

function agentIn(scope: StartScope): Agent {
  return {
    conversation: "bench",
    history: "new",
    capabilities,
    evidence: {},
    prompt: (turn) => eventsOf(turn, published.get(scope.sandbox)),
    ended: () => false,
    close: async () => undefined,
  };
}

function eventsOf(turn: Turn, publication: Publication | undefined): AsyncIterable<AgentEvent> {
  const [verb, count = "0", url = ""] = textOf(turn.prompt).split(/\s+/);
  if (verb === "flood") return flood(Number(count));
  if (publication === undefined) throw new Error("dispatch needs a tool");
  return dispatched(publication, Number(count), url, turn.signal);
}

async function* flood(count: number): AsyncGenerator<AgentEvent, void, undefined> {
  yield { type: "message_start", id: "block-1" };
  for (let index = 0; index < count; index += 1) {
    yield { type: "message_delta", id: "block-1", delta: `${index} ` };
  }
  yield { type: "message_end", id: "block-1" };
  yield { type: "done", stopReason: "end_turn" };
}

function textOf(prompt: readonly ContentBlock[]): string {
  return prompt
    .map((block) => block.text ?? "")
    .join(" ")
    .trim();
}

const capabilities: Agent["capabilities"] = {
  textMessages: true,
  images: false,
  fileAttachments: false,
  mcpTools: true,
  toolCalls: true,
  reasoning: false,
  planMode: false,
  permissions: false,
  usage: false,
  streamingDeltas: true,
  sessionLifecycle: false,
};

export default definePlugin({
  name: "bench-actors",
  api: 1,
  config: z.strictObject({}),
  register: (registrar) => {
    registrar.add("delivery", delivery);
    registrar.add("harness", harness);
  },
});
