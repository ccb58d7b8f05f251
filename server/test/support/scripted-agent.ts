import {
  type AgentEvent,
  definePlugin,
  type Harness,
  type HarnessCapabilities,
  HarnessFailed,
  type SandboxBackend,
  type Turn,
} from "@ambit/core/plugin";
import { z } from "zod";

/** What the agent does in its turn. */
export type Script = (turn: Turn) => AsyncIterable<AgentEvent>;

const capabilities: HarnessCapabilities = {
  textMessages: true,
  images: false,
  fileAttachments: false,
  mcpTools: false,
  toolCalls: false,
  reasoning: false,
  planMode: false,
  permissions: false,
  usage: false,
  streamingDeltas: true,
  sessionLifecycle: false,
};

/**
 * An agent inside this process that does what the test says, in a sandbox that is none.
 *
 * @param madeConnection whether a caller is said to be a run's. Default: the backend doesn't say.
 */
export function scriptedAgent(script: Script, madeConnection?: SandboxBackend["madeConnection"]) {
  const harness: Harness = {
    name: "scripted",
    id: "scripted",
    aliases: [],
    site: "sandbox",
    claims: [],
    supportsPermissionRequests: true,
    maxToolCallMs: 60_000,
    touches: () => ["network"],
    gaps: () => [],
    probe: async () => [],
    issues: () => [],
    requiredPaths: () => [],
    visibleCredentials: () => [],
    start: async () => ({
      conversation: "one",
      history: "new",
      capabilities,
      evidence: {},
      ended: () => false,
      prompt: (turn) => script(turn),
      close: async () => {},
    }),
  };
  const sandbox: SandboxBackend = {
    name: "none",
    site: "sandbox",
    claims: [],
    touches: () => ["network", "filesystem", "process", "environment", "resources", "secrets"],
    gaps: () => [],
    probe: async () => [],
    ...(madeConnection === undefined ? {} : { madeConnection }),
    open: async () => ({
      workspace: "/workspace",
      home: "/home/agent",
      confinement: "unconfined",
      evidence: {},
      spawn: () => Promise.reject(new HarnessFailed("Nothing runs here.")),
      writeFiles: async () => {},
      readFile: () => Promise.reject(new HarnessFailed("There are no files here.")),
      expose: () => Promise.reject(new HarnessFailed("Nothing is exposed here.")),
      close: async () => {},
    }),
  };
  return definePlugin({
    name: "scripted",
    api: 1,
    config: z.strictObject({}),
    register: (registrar) => {
      registrar.add("harness", harness);
      registrar.add("sandbox", sandbox);
    },
  });
}

/** Says the words, one coalesced message each, and is done. */
export function saying(...words: readonly string[]): Script {
  return async function* () {
    for (const text of words) yield { type: "message", text };
    yield { type: "done", stopReason: "end_turn" };
  };
}

/** Waits until the turn is cancelled. */
export async function* waiting({ signal }: Turn): AsyncGenerator<AgentEvent> {
  yield { type: "message", text: "waiting" };
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
}
