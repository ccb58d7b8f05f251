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

/** An agent that runs each prompt as a shell line in the sandbox, and returns its output. */
const shell = definePlugin({
  name: "shell",
  api: 1,
  config: z.strictObject({}),
  register: ({ add }) =>
    add("harness", {
      site: "sandbox",
      claims: [],
      touches: () => [],
      gaps: () => [],
      probe: async () => [],
      name: "shell",
      id: "shell",
      aliases: [],
      supportsPermissionRequests: true,
      maxToolCallMs: 1_000,
      issues: () => [],
      requiredPaths: () => [],
      visibleCredentials: () => [],
      start: async ({ sandbox, resume }) => ({
        conversation: resume ?? `begun by ${process.pid}`,
        history: resume === undefined ? "new" : "loaded",
        capabilities,
        evidence: {},
        ended: () => false,
        close: async () => {},
        prompt: ({ prompt, signal }) => printing(sandbox, prompt[0]?.text ?? "", signal, resume),
      }),
    }),
});

/** @param {import("@ambit/core/plugin").Sandbox} sandbox @param {string} line @param {AbortSignal} signal @param {string | undefined} resume */
async function* printing(sandbox, line, signal, resume) {
  const env = { PATH: sandbox.image?.searchPath ?? "", RESUMED: resume ?? "none", ...sandbox.placeholders };
  const { stdout, exit } = await sandbox.spawn({ argv: ["/bin/sh", "-c", line], env, role: "agent", signal });
  const said = await new Response(stdout).text();
  const { code } = await exit;
  if (code !== 0) throw new Error(`the shell ended with ${code}`);
  yield { type: "message", text: said.trim() || "nothing" };
  yield { type: "done", stopReason: "end_turn" };
}

const daytona = JSON.parse(process.env.AMBIT_TEST_DAYTONA ?? "{}");

export default {
  plugins: [
    shell,
    { use: "@ambit/sandbox-daytona", config: daytona },
    { use: "@ambit/store-postgres", config: { schema: "takeover" } },
  ],
  server: { drainMs: 2_000 },
  interactions: { keyFile: process.env.AMBIT_TEST_KEY },
  store: { leaseMs: 2_000, retryTimeoutMs: 20_000 },
};
