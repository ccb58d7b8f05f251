/**
 * A plugin that the bench loads into a real server: an agent in the server's own process, so that only the runner's
 * work is measured. Its prompt is `flood N`, `generate N`, or `dispatch N URL`.
 */
import {
  type Agent,
  type AgentEvent,
  type AgentEvents,
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

/** Publications by sandbox: this delivery passes tools within the process. */
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

function eventsOf(turn: Turn, publication: Publication | undefined): AgentEvents {
  const [verb, count = "0", url = ""] = textOf(turn.prompt).split(/\s+/);
  if (verb === "flood") return flooding(Number(count));
  if (verb === "generate") return generated(Number(count));
  if (publication === undefined) throw new Error("dispatch needs a tool");
  return dispatched(publication, Number(count), url, turn.signal);
}

/** Events that are all available, like those of an agent whose output was read in one piece. */
function flooding(count: number): AgentEvents {
  const ready = counted(count);
  return {
    [Symbol.asyncIterator]: () => ({
      next: async () => ready.next(),
      ready: () => ready.next().value,
    }),
  };
}

/** The same, each from an asynchronous generator: three promises. */
async function* generated(count: number): AsyncGenerator<AgentEvent, void, undefined> {
  yield* counted(count);
}

function* counted(count: number): Generator<AgentEvent, undefined, undefined> {
  yield { type: "message_start", id: "block-1" };
  for (let index = 0; index < count; index += 1) {
    yield { type: "message_delta", id: "block-1", delta: `${index} ` };
  }
  yield { type: "message_end", id: "block-1" };
  yield { type: "done", stopReason: "end_turn" };
  return undefined;
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
