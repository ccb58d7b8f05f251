import { join } from "node:path";
import type { InputQuestion } from "@ambit/core/plugin";
import { type ModelServer, startModelServer } from "@ambit/model-server";
import { afterEach, beforeEach, expect, it } from "vitest";
import { describeUnless } from "../../../../scripts/vitest/skip-without.ts";
import { AcpHarness } from "../../src/index.js";
import { codex } from "../../src/profiles/codex.js";
import type { Preparation } from "../../src/profiles/profile.js";
import { folder, isInstalled } from "../support/agent-stage.js";
import { ProcessSandbox } from "../support/process-sandbox.js";
import { eventsOf, ofType, TestScope, textOf, turnOf } from "../support/runs.js";
import { startToolServer } from "../support/tool-server.js";

const limits = {
  cancelMs: 10_000,
  closeMs: 2_000,
  messageCharacters: 1_000_000,
  bufferedCharacters: 262_144,
};
const harness = new AcpHarness(codex, { limits, folder, env: {} });

it("is installed, with test/tools or in AMBIT_AGENTS_FOLDER", () => {
  expect(isInstalled(codex)).toBe(true);
});

describeUnless(isInstalled(codex) ? undefined : "Codex isn't installed")("Codex, as a process", () => {
  let sandbox: ProcessSandbox;
  let model: ModelServer;
  beforeEach(async () => {
    [sandbox, model] = await Promise.all([ProcessSandbox.open(), startModelServer({ expectedKey: "k" })]);
  });
  afterEach(async () => {
    await sandbox.close();
    await model.close();
  });

  async function started(
    options: ConstructorParameters<typeof TestScope>[1] = {},
    changes: object = {},
    by: AcpHarness = harness,
  ) {
    const request = {
      model: "scripted-model",
      modelConnection: {
        endpoint: { baseUrl: `${model.url}/v1` },
        credentials: [{ binding: { kind: "environment", name: "OPENAI_API_KEY" }, value: "k" }],
      },
      ...changes,
    };
    const scope = new TestScope(sandbox, { request, ...options });
    return { scope, agent: await by.start(scope) };
  }

  it("answers with text, uses both prompts, and keeps its warnings out of the text", async () => {
    const { agent, scope } = await started(
      {},
      { systemPrompt: "SYSTEM", appendSystemPrompt: 'AND "THIS"\u007f' },
    );
    const events = await eventsOf(agent, turnOf());
    expect(textOf(events)).toBe("Hello from the scripted model.");
    expect(ofType(events, "usage")).toHaveLength(1);
    const body = JSON.stringify(model.requests.find(({ operation }) => operation === "generate")?.body);
    expect(body).toContain("SYSTEM");
    expect(body).toContain("THIS");
    await scope.close();
  });

  it.each([
    ["of one piece", "[[shell echo first; echo second]]", "first\nsecond\n"],
    ["of several pieces", "[[shell echo first; sleep 0.2; echo second]]", "first\nsecond\n"],
    ["that only lists", "[[shell ls]]", "listed.txt\n"],
    ["of a failed command", "[[shell echo failing; exit 3]]", "failing\n"],
  ])("reports the output of a shell command: %s", async (_what, prompt, output) => {
    const { agent, scope } = await started();
    await sandbox.writeFiles([{ path: join(sandbox.workspace, "listed.txt"), content: "" }]);
    const events = await eventsOf(agent, turnOf({ prompt }));
    expect(ofType(events, "tool_result")).toMatchObject([{ output }]);
    await scope.close();
  });

  const known = { model: codex.model?.defaultModel };
  const lookup = '[[call lookup {"key":"k"}]]';

  it("offers published tools to models that it knows, and calls them by their own names", async () => {
    await using tools = await startToolServer();
    const { agent, scope } = await started({ servers: [tools.published] }, known);
    const events = await eventsOf(agent, turnOf({ prompt: lookup }));
    expect(tools.calls).toEqual([{ key: "k" }]);
    expect(ofType(events, "tool_call")).toMatchObject([{ name: "lookup", input: { key: "k" } }]);
    expect(ofType(events, "tool_result")).toMatchObject([{ output: "value of k" }]);
    const asked = model.requests.filter(({ toolNames }) => toolNames.length > 0);
    expect(asked.flatMap(({ toolNames }) => toolNames)).not.toContain("tool_search");
    // Otherwise its own: the list has the instructions for each of them.
    expect(asked[0]?.model).toBe(known.model);
    await scope.close();
  });

  it("would hide them without its changed list of models, until the model searches (the control)", async () => {
    await using tools = await startToolServer();
    const { binary: _binary, ...program } = codex.program;
    const plain = new AcpHarness({ ...codex, program }, { limits, folder, env: {} });
    const { agent, scope } = await started({ servers: [tools.published] }, known, plain);
    const hidden = await eventsOf(agent, turnOf({ prompt: lookup }));
    expect(textOf(hidden)).toContain("NO TOOL lookup");
    expect(tools.calls).toEqual([]);
    const prompt = `[[call tool_search {"query":"lookup"}]] ${lookup}`;
    const events = await eventsOf(agent, turnOf({ prompt }));
    expect(tools.calls).toEqual([{ key: "k" }]);
    expect(ofType(events, "tool_call")).toMatchObject([{ name: "lookup", input: { key: "k" } }]);
    await scope.close();
  });

  it("asks its user in its plan mode, and gets the form's answer", async () => {
    const planning = {
      ...codex,
      prepare: (preparation: Preparation) => ({
        ...codex.prepare(preparation),
        session: { options: { collaboration_mode: "plan" } },
      }),
    };
    const { agent, scope } = await started({}, {}, new AcpHarness(planning, { limits, folder, env: {} }));
    const options = ["main", "dev"].map((label) => ({ label, description: label }));
    const asks = { questions: [{ id: "branch", header: "Branch", question: "Which branch?", options }] };
    const questions: InputQuestion[] = [];
    const onInput = async (question: InputQuestion) => {
      questions.push(question);
      return { action: "accept", content: { branch: "main" } } as const;
    };
    const prompt = `[[call =request_user_input ${JSON.stringify(asks)}]]`;
    await eventsOf(agent, turnOf({ prompt, onInput }));
    expect(JSON.stringify(questions)).toContain("Which branch?");
    expect(model.requests.at(-1)?.toolResults).toMatchObject([{ text: expect.stringContaining("main") }]);
    await scope.close();
  });

  it("takes up an earlier conversation in a new process", async () => {
    const first = await started({}, { sessionId: "s" });
    await eventsOf(first.agent, turnOf({ prompt: "[[say the earlier answer]]" }));
    await first.scope.close();
    const second = await started({ resume: first.agent.conversation });
    expect(second.agent.history).toBe("loaded");
    expect(textOf(await eventsOf(second.agent, turnOf()))).toBe("Hello from the scripted model.");
    expect(JSON.stringify(model.requests.at(-1)?.body)).toContain("the earlier answer");
    await second.scope.close();
  });
});
