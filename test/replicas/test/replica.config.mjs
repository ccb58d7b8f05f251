import { definePlugin } from "@ambit/core/plugin";
import { z } from "zod";

const capabilities = Object.fromEntries(
  [
    ...["textMessages", "images", "fileAttachments", "mcpTools", "toolCalls", "reasoning", "planMode"],
    ...["permissions", "usage", "streamingDeltas", "sessionLifecycle"],
  ].map((name) => [name, false]),
);

/** An agent in the replica's own process: it counts to what the prompt says, a step every few milliseconds. */
const counting = definePlugin({
  name: "counting",
  api: 1,
  config: z.strictObject({}),
  register({ add }) {
    const common = { site: "sandbox", claims: [], touches: () => [], gaps: () => [], probe: async () => [] };
    add("sandbox", {
      ...common,
      name: "none",
      rootfs: "host",
      open: async () => ({
        workspace: "/nowhere",
        confinement: "unconfined",
        evidence: {},
        write: async () => {},
        close: async () => {},
        spawn: () => Promise.reject(new Error("nothing is started here")),
        expose: () => Promise.reject(new Error("nothing is exposed here")),
      }),
    });
    add("harness", {
      ...common,
      name: "counting",
      id: "counting",
      aliases: [],
      supportsPermissionRequests: true,
      maxToolCallMs: 1_000,
      issues: () => [],
      requiredPaths: () => [],
      visibleCredentials: () => [],
      start: async () => ({
        conversation: "one",
        history: "new",
        capabilities,
        evidence: {},
        ended: () => false,
        close: async () => {},
        prompt: ({ prompt, signal }) => count(Number(/\d+/.exec(prompt[0]?.text ?? "")?.[0] ?? 1), signal),
      }),
    });
  },
});

/** @param {number} steps @param {AbortSignal} signal */
async function* count(steps, signal) {
  for (let step = 1; step <= steps && !signal.aborted; step += 1) {
    yield { type: "message", text: `step ${step}` };
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  yield { type: "done", stopReason: "end_turn" };
}

export default {
  plugins: [
    counting,
    "@ambit/metrics-prometheus",
    { use: "@ambit/store-postgres", config: { schema: "chaos" } },
  ],
  limits: { concurrentRuns: 8 },
  tokens: JSON.parse(process.env.AMBIT_TEST_TOKENS ?? "[]"),
  server: { drainMs: 2_000 },
  store: { leaseMs: 2_000, retryTimeoutMs: 20_000 },
};
