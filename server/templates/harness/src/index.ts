import { definePlugin } from "@ambit/core/plugin";
import { AcpHarness, type Profile, publishedTool } from "@ambit/harness-acp";
import { z } from "zod";

/** One agent that speaks ACP, as data. This one is Ambit's demo agent: name your agent's package instead. */
const profile: Profile = {
  id: "sample", // What a request names: {"harness": "sample"}.
  title: "sample",
  aliases: [],
  program: { package: "@ambit/agent-demo", bin: "ambit-agent-demo", inImage: "copied" },
  arguments: ["--ask"],
  environment: {},
  instructions: { agentsFile: "AGENTS.md", systemPrompt: false, appendSystemPrompt: false, modes: [] },
  // It asks before each use of its own tools. If yours doesn't, say false: Ambit then refuses permissions that it can't enforce.
  supportsPermissionRequests: true,
  ownTools: { run: "shell", write: "edit", read: "read", fetch: "fetch" },
  maxToolCallMs: 600_000, // How long it waits for one tool call.
  clientCapabilities: {},
  reports: { reasoning: true, plans: true, usage: true },
  quirks: {
    savesBeforeAnswering: true,
    promptsBeforeTools: false,
    replaysLate: false,
    staysInOrder: false,
    failureMeta: [],
  },
  prepare: () => ({ files: [], environment: {} }),
  // Which tool a call belongs to: one of the run's, published over MCP, or one of the agent's own.
  identify: ({ title, name }, servers) =>
    publishedTool(title, ["mcp__{server}__{tool}"], servers) ?? { name: name ?? title ?? "tool" },
};

/** @param command path of a program to run in place of the agent's package; the kit gives one. */
export const makeHarness = (command?: string) => new AcpHarness(profile, { folder: process.cwd(), command });

export default definePlugin({
  name: "ambit-sample",
  api: 1,
  config: z.strictObject({}),
  // The agent acts only inside the sandbox and inherits its guarantees: a harness claims nothing.
  register: (registrar) => registrar.add("harness", makeHarness()),
});
