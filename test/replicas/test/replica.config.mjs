import { randomUUID } from "node:crypto";
import { definePlugin } from "@ambit/core/plugin";
import { z } from "zod";

const capabilities = Object.fromEntries(
  [
    "textMessages",
    "images",
    "fileAttachments",
    "mcpTools",
    "toolCalls",
    "reasoning",
    "planMode",
    "permissions",
    "usage",
    "streamingDeltas",
    "sessionLifecycle",
  ].map((name) => [name, false]),
);

/** An agent in the replica's own process, which counts to the number in the prompt, one step every few milliseconds. */
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
        home: "/nowhere",
        confinement: "unconfined",
        evidence: {},
        writeFiles: async () => {},
        readFile: () => Promise.reject(new Error("no file is here")),
        close: async () => {},
        spawn: () => Promise.reject(new Error("nothing is started here")),
        expose: () => Promise.reject(new Error("nothing is exposed here")),
      }),
    });
    const scopes = new Map();
    add("gateway", {
      ...common,
      name: "route",
      site: "runner",
      issues: () => [],
      unpriced: () => [],
      open: async (_use, scope) => {
        const key = randomUUID();
        scopes.set(key, scope);
        scope.defer(async () => void scopes.delete(key));
        return { baseUrl: "http://127.0.0.1:1/v1", key };
      },
    });
    add("harness", {
      ...common,
      model: () => use,
      name: "counting",
      id: "counting",
      aliases: [],
      supportsPermissionRequests: true,
      maxToolCallMs: 1_000,
      issues: () => [],
      requiredPaths: () => [],
      visibleCredentials: () => ["MODEL_KEY"],
      start: async ({ model }) => ({
        conversation: "one",
        history: "new",
        capabilities,
        evidence: {},
        ended: () => false,
        close: async () => {},
        prompt: ({ prompt, signal }) =>
          prompt[0]?.text === "spend"
            ? spend(scopes.get(model.key), signal)
            : count(Number(/\d+/.exec(prompt[0]?.text ?? "")?.[0] ?? 1), signal),
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

/** One request to its model with 100 tokens. */
async function* spend(scope, signal) {
  const admission = await scope.admit("m-1", signal);
  if (admission.allowed) {
    const exchange = scope.begin("m-1");
    exchange.used({ model: "m-1", input: 60, cached: 0, output: 40, cost: 0.01 });
    exchange.ended();
  }
  yield { type: "message", text: `spent: ${admission.allowed}` };
  yield { type: "done", stopReason: "end_turn" };
}

const use = {
  protocol: "openai",
  endpoint: "https://model.example/v1",
  basePath: "/v1",
  headers: {},
  credentials: { MODEL_KEY: "sk-secret" },
  model: "m-1",
  auxiliaryModels: [],
};

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
