import { demoAgentEntry } from "@ambit/agent-demo";
import type { Profile } from "./profile.js";
import { publishedTool } from "./tool-names.js";

/** Ambit's own demo agent: follows a script in the prompt, without model, key or network. */
export const demo: Profile = {
  id: "demo",
  title: "the demo agent",
  aliases: [],
  program: {
    package: "@ambit/agent-demo",
    bin: "ambit-agent-demo",
    inImage: "copied",
    entry: demoAgentEntry,
    isBundled: true,
  },
  arguments: ["--ask"],
  environment: {},
  instructions: { agentsFile: "AGENTS.md", systemPrompt: false, appendSystemPrompt: false, modes: [] },
  // Its limit is 600 s without progress; every progress message restarts it.
  supportsPermissionRequests: true,
  ownTools: { run: "shell", write: "edit", read: "read", fetch: "fetch" },
  maxToolCallMs: 3_600_000,
  clientCapabilities: {},
  reports: { reasoning: true, plans: true, usage: true },
  quirks: {
    savesBeforeAnswering: true,
    promptsBeforeTools: false,
    replaysLate: false,
    staysInOrder: true,
    failureMeta: [],
  },
  ahead: { processes: 1, home: [], notifications: [] },
  prepare: () => ({ files: [], environment: {} }),
  identify: (call, servers) => {
    const ours =
      call.kind === "other" ? publishedTool(call.title, ["mcp__{server}__{tool}"], servers) : undefined;
    return ours ?? { name: verbs[call.kind ?? ""] ?? call.name ?? call.title ?? "tool" };
  },
};

/** The script's own verbs, by ACP's kind of tool. */
const verbs: Readonly<Record<string, string>> = {
  execute: "run",
  read: "read",
  edit: "write",
  fetch: "fetch",
};
