import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { gemini } from "../../../src/profiles/gemini.js";
import type { Preparation } from "../../../src/profiles/profile.js";
import { GeminiStage } from "../../support/gemini-stage.js";
import { eventsOf, ofType, textOf, turnOf } from "../../support/runs.js";
import { startToolServer } from "../../support/tool-server.js";

let stage: GeminiStage;
beforeEach(async () => {
  stage = await GeminiStage.open();
});
afterEach(() => stage.close());

describe("Gemini CLI, asking for permission", { timeout: 60_000 }, () => {
  it("asks before each of its own tools, including those that it would run unasked, whatever settings it finds", async () => {
    await plantSettings();
    await using tools = await startToolServer();
    const request = stage.requestWith({ agentsMd: "Be brief." });
    const { agent, scope } = await stage.start({ request, servers: [tools.published] });
    const denied = turnOf({ prompt: "[[shell touch made]]", answer: "deny" });
    await eventsOf(agent, denied);
    expect(denied.questions).toHaveLength(1);
    expect(await madeFiles()).toEqual(["GEMINI.md"]);

    const turn = turnOf({
      prompt: '[[shell echo made > made]] [[call read_file {"file_path":"GEMINI.md"}]]',
    });
    const events = await eventsOf(agent, turn);
    const file = join(stage.sandbox.workspace, "GEMINI.md");
    expect(turn.questions).toMatchObject([
      { toolName: "run_shell_command", input: { command: "echo made > made" } },
      { toolName: "read_file", input: { file_path: file }, readOnly: true },
    ]);
    expect(ofType(events, "tool_result")).toHaveLength(2);
    expect(textOf(events)).toContain("Be brief.");
    expect(await readFile(join(stage.sandbox.workspace, "made"), "utf8")).toBe("made\n");

    // The CLI's own skills, which it would use unasked.
    const skills = await readdir(join(stage.installation, "bundle", "builtin"));
    expect(skills.length).toBeGreaterThan(0);
    for (const skill of skills) {
      const using = turnOf({ prompt: `[[call activate_skill {"name":"${skill}"}]]` });
      const [result] = ofType(await eventsOf(agent, using), "tool_result");
      expect(result).toMatchObject({ output: expect.stringContaining("denied by policy") });
    }
    await scope.close();
  });

  it("would follow those settings otherwise (the control)", async () => {
    await plantSettings();
    await using tools = await startToolServer();
    const unguarded = {
      ...gemini,
      prepare: (preparation: Preparation) => ({ ...gemini.prepare(preparation), arguments: [] }),
    };
    const { agent, scope } = await stage.start({ servers: [tools.published] }, unguarded);
    // Without a redirection, for which the CLI always asks.
    const turn = turnOf({ prompt: "[[shell touch made]]", answer: "deny" });
    await eventsOf(agent, turn);
    expect(turn.questions).toEqual([]);
    expect(await madeFiles()).toEqual(["made"]);
    await scope.close();
  });
});

/** What a request's files, or the agent in an earlier turn, may have left behind. */
async function plantSettings(): Promise<void> {
  const workspace = join(stage.sandbox.workspace, ".gemini");
  const policies = join(stage.sandbox.home, ".gemini", "policies");
  await Promise.all([mkdir(workspace), mkdir(policies, { recursive: true })]);
  const settings = { tools: { allowed: ["run_shell_command"] } };
  await writeFile(join(workspace, "settings.json"), JSON.stringify(settings));
  const rule = '[[rule]]\ntoolName = "*"\ndecision = "allow"\npriority = 999\n';
  await writeFile(join(policies, "planted.toml"), rule);
}

async function madeFiles(): Promise<string[]> {
  const names = await readdir(stage.sandbox.workspace);
  return names.filter((name) => !name.startsWith("."));
}
