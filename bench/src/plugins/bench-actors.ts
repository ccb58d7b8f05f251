/**
 * A plugin that the bench loads into a real server: an agent in the server's own process, so that only the runner's
 * work is measured. Its prompt is `PAIRS URL`.
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
import { HttpCaller } from "../http.js";
import { interleaved, timed } from "../measure.js";

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
  const [count = "0", url = ""] = textOf(turn.prompt).split(/\s+/);
  if (publication === undefined) throw new Error("dispatch needs a tool");
  return dispatched(publication, Number(count), url, turn.signal);
}

const callsPerSample = 20;

/**
 * Calls the run's tool, and posts the same arguments directly to its target, in turn. Its output is the pairs as JSON.
 */
async function* dispatched(
  publication: Publication,
  pairs: number,
  url: string,
  signal: AbortSignal,
): AsyncGenerator<AgentEvent, void, undefined> {
  const [tool] = publication.tools;
  if (tool === undefined) throw new Error("dispatch needs a tool");
  const given = { query: "ada lovelace", limit: 10, tags: ["customer"] };
  const body = JSON.stringify({
    data: { id: "call-1", type: "function", function: { name: "crm.search_contacts.v0", arguments: given } },
  });
  const direct = new HttpCaller(url);
  const measured = await interleaved(
    () =>
      perCall(async () => {
        const { isError, output } = await publication.call({ name: tool.name, arguments: given, signal });
        if (isError) throw new Error(`the tool failed: ${output}`);
      }),
    () => perCall(() => direct.post("/", body)),
    { pairs, warmUp: 20 },
  );
  direct.close();
  yield { type: "message", text: JSON.stringify(measured) };
  yield { type: "done", stopReason: "end_turn" };
}

async function perCall(call: () => Promise<unknown>): Promise<number> {
  const took = await timed(async () => {
    for (let index = 0; index < callsPerSample; index += 1) await call();
  });
  return took / callsPerSample;
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
