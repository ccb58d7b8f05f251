// needs: python
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answering, asking, startAgent, type TestAgent } from "./support/agents.js";
import { type Platform, startPlatform } from "./support/platform.js";
import { Stage } from "./support/stage.js";
import { callbackTool, clientTool, nodeTool, pythonTool } from "./support/tools.js";

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open();
});
afterAll(() => stage.close());

describe.each(["demo", "gemini", "codex"] as const)("%s calls every kind of tool", (id) => {
  let agent: TestAgent;
  let platform: Platform;
  beforeAll(async () => {
    [agent, platform] = await Promise.all([
      startAgent(id),
      startPlatform(() => ({ found: "by the platform" })),
    ]);
  });
  afterAll(async () => {
    await agent.close();
    await platform[Symbol.asyncDispose]();
  });

  const values = ["42", "[1,2]", "true", "null"];
  const customTools = [
    callbackTool("lookup"),
    pythonTool("double", "def main(x):\n    print('noise')\n    return {'python': x * 2}"),
    nodeTool("triple", "module.exports.main = async ({ x }) => ({ node: x * 3 });"),
    // Some agents interpret JSON that isn't an object.
    nodeTool("value", "module.exports = ({ json }) => JSON.parse(json);"),
    nodeTool("speak", "module.exports = () => 'two\\nlines';"),
    clientTool("pick", { render: { kind: "component", component: "Picker" } }),
  ];

  it("callback, Python and Node in one run, then a client tool across two", { timeout: 60_000 }, async () => {
    const request = {
      ...agent.request,
      customTools,
      toolCallback: { endpoint: platform.endpoint },
      sessionId: `kinds-${id}`,
    };
    const calls = agent.prompt(
      { tool: "lookup", input: { key: "a" } },
      { tool: "double", input: { x: 21 } },
      { tool: "triple", input: { x: 5 } },
      ...values.map((json) => ({ tool: "value", input: { json } })),
      { tool: "speak" },
      { tool: "pick", input: { from: "reds" } },
    );
    const first = await stage.run({ ...request, ...asking(calls) });
    const paused = await first.result;
    expect(paused).toMatchObject({ ok: true, stopReason: "paused" });
    expect(platform.calls).toEqual([{ name: "ref__lookup", arguments: { key: "a" } }]);
    const results = { lookup: '{"found":"by the platform"}', double: '{"python":42}', triple: '{"node":15}' };
    for (const [tool, output] of Object.entries(results)) {
      expect(first.resultsOf(tool)).toEqual([expect.objectContaining({ output })]);
    }
    expect(first.resultsOf("value").map(({ output }) => output)).toEqual(values);
    // The same for every agent, however it wraps a tool's text: there is data if the tool returned some.
    const resultsWithoutIds = (tool: string) =>
      first.resultsOf(tool).map(({ id: _id, type: _type, ...rest }) => rest);
    expect(resultsWithoutIds("lookup")).toEqual([{ output: '{"found":"by the platform"}' }]);
    expect(resultsWithoutIds("double")).toEqual([{ output: '{"python":42}', data: { python: 42 } }]);
    expect(resultsWithoutIds("speak")).toEqual([{ output: "two\nlines", data: "two\nlines" }]);
    expect(first.of("tool_call").find(({ name }) => name === "speak")?.input).toEqual({});
    expect(first.of("interaction_request")).toMatchObject([
      { kind: "client_tool", payload: { toolName: "pick", input: { from: "reds" } } },
    ]);
    expect(first.resultsOf("pick")).toEqual([]);

    const again = agent.prompt({ tool: "pick", input: { from: "reds" } });
    const answers = [{ tool: "pick", input: { from: "reds" }, output: { colour: "crimson" } }];
    const second = await stage.run({ ...request, ...answering(calls, answers, again, first) });
    expect(await second.result).toMatchObject({ ok: true, receipt: { session: { history: "warm" } } });
    expect(second.resultsOf("pick")).toMatchObject([
      { output: '{"colour":"crimson"}', render: { kind: "component" } },
    ]);
    expect(second.of("interaction_response")).toMatchObject([{ kind: "client_tool" }]);
    expect(second.of("interaction_request")).toEqual([]);

    if (agent.model === undefined) return;
    const seen = agent.model.requests
      .flatMap(({ toolResults }) => toolResults.map(({ text }) => text))
      .join("\n");
    for (const output of [...Object.values(results), ...values, '{"colour":"crimson"}'])
      expect(withoutEscapes(seen)).toContain(output);
  });
});

/** Some agents wrap a tool's text in JSON. */
function withoutEscapes(text: string): string {
  return text.replaceAll("\\", "");
}
