import { appendFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { claude } from "../../src/profiles/claude.js";
import { codex } from "../../src/profiles/codex.js";
import { gemini } from "../../src/profiles/gemini.js";
import { opencode } from "../../src/profiles/opencode.js";
import { pi } from "../../src/profiles/pi.js";
import { qwen } from "../../src/profiles/qwen.js";
import { AgentStage, isTested } from "../support/agent-stage.js";
import { eventsOf, ofType, turnOf } from "../support/runs.js";

/** For docs/agents.md. */
const file = process.env.AMBIT_AGENTS_RESULTS;

const content = "one\ntwo\n";
const patch = "*** Begin Patch\n*** Add File: made.txt\n+one\n+two\n*** End Patch";

/** How its model has it write a file, and where it tells its model how much to reason. */
const agents = [
  {
    profile: claude,
    model: "claude-sonnet-5",
    write: ["Write", { file_path: "made.txt", content }],
    effort: { low: { output_config: { effort: "low" } } },
  },
  {
    profile: codex,
    model: "gpt-5.5",
    write: undefined,
    effort: { low: { reasoning: { effort: "low" } } },
  },
  {
    profile: gemini,
    model: "gemini-2.5-flash",
    write: ["write_file", { file_path: "made.txt", content }],
    effort: { low: { generationConfig: { thinkingConfig: { thinkingBudget: 1_024 } } } },
  },
  {
    profile: opencode,
    model: "gpt-5.5",
    write: ["apply_patch", { patchText: patch }],
    effort: { high: { reasoning_effort: "high" } },
  },
  {
    profile: pi,
    model: "gpt-5.5",
    write: ["write", { path: "made.txt", content }],
    effort: { low: { reasoning_effort: "low" } },
  },
  {
    profile: qwen,
    model: "qwen3-coder-plus",
    write: ["write_file", { file_path: "made.txt", content }],
    effort: { low: { reasoning: { effort: "low" } } },
  },
] as const;

describe.each(
  agents
    .filter(({ profile: { id } }) => isTested(id, "codex", "gemini", "pi"))
    .map((agent) => ({ id: agent.profile.id, ...agent })),
)("$id, as a process", { timeout: 60_000 }, ({ profile, model, write, effort }) => {
  let stage: AgentStage;
  beforeAll(async () => {
    stage = await AgentStage.open(profile);
  });
  afterAll(() => stage.close());

  const record = (row: string, note: string) => {
    if (file === undefined) return;
    appendFileSync(file, `${JSON.stringify({ table: "features", row, agent: profile.id, note })}\n`);
  };

  it("reports what a call has changed, and tells its model how much to reason", async () => {
    const [[reasoningEffort, told] = []] = Object.entries(effort);
    const { agent, scope } = await stage.start({ request: stage.requestWith({ model, reasoningEffort }) });
    const { workspace } = stage.sandbox;
    const command = `apply_patch <<'EOP'\n${patch}\nEOP`;
    const prompt =
      write === undefined
        ? `[[shell ${command}]]`
        : `[[call ${write[0]} ${JSON.stringify(write[1]).replace('"made.txt"', `"${workspace}/made.txt"`)}]]`;
    const turn = turnOf({ prompt });
    const events = await eventsOf(agent, turn);
    const path = expect.stringMatching(/made\.txt$/);
    expect(ofType(events, "tool_result")).toMatchObject([{ changes: [{ path, newText: content }] }]);
    const bodies = stage.model.requests.flatMap(({ operation, toolNames, body }) =>
      operation === "generate" && toolNames.length > 0 ? [body] : [],
    );
    expect(bodies.length).toBeGreaterThan(0);
    for (const body of bodies) expect(body).toMatchObject(told ?? {});
    const efforts = Object.keys(profile.reasoning?.efforts ?? {});
    record("reasoningEffort", efforts.map((value) => `\`${value}\``).join(", "));
    record(
      "changes of files",
      turn.questions.some(({ changes }) => changes !== undefined) ? "yes, asked with" : "yes",
    );
    await scope.close();
  });
});
