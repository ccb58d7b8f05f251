import { HarnessFailed } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { chunk, endTurn, fakeAgent } from "../support/fake-agent.js";
import { eventsOf, failureOf, ofType, textOf, turnOf } from "../support/runs.js";

const offered = {
  sessionId: "s1",
  configOptions: [
    { category: "model", currentValue: "p/one", options: [{ value: "p/one" }, { value: "p/two" }] },
  ],
};

describe("a model that the request names", () => {
  it.each(["one", "p/two"])("is accepted if the agent lists it: %s", async (model) => {
    const fake = fakeAgent({
      onPrompt: async () => endTurn,
      newSession: offered,
      launch: { model, requiresListed: true },
    });
    const { scope } = await fake.start();
    await scope.close();
  });

  it("is refused if the agent doesn't list it, with its list", async () => {
    const fake = fakeAgent({
      onPrompt: async () => endTurn,
      newSession: offered,
      launch: { model: "three", requiresListed: true },
    });
    await expect(fake.start()).rejects.toThrow(
      "The fake doesn't know the model 'three': it offers p/one, p/two.",
    );
  });

  it("is refused with the beginning of a long list, without what a terminal obeys", async () => {
    const availableModels = Array.from({ length: 100 }, (_, at) => ({
      modelId: `\u001b[2J${at}${"x".repeat(300)}`,
    }));
    const newSession = { sessionId: "s1", models: { availableModels } };
    const launch = { model: "three", requiresListed: true };
    const failure = await fakeAgent({ onPrompt: async () => endTurn, newSession, launch })
      .start()
      .then(() => "", String);
    expect(failure).toMatch(/it offers 0x{199}…, 1x+…,.*, 50 more\.$/);
    expect(failure).not.toContain("\u001b");
    expect(failure.length).toBeLessThan(12_000);
  });

  it("is accepted if the agent lists none, or another endpoint may have it", async () => {
    for (const [newSession, requiresListed] of [
      [{ sessionId: "s1" }, true],
      [offered, false],
    ] as const) {
      const launch = { model: "three", requiresListed };
      const { scope } = await fakeAgent({ onPrompt: async () => endTurn, newSession, launch }).start();
      await scope.close();
    }
  });
});

describe("a reasoning effort that the request names", () => {
  const option = (values: readonly string[]) => ({
    sessionId: "s1",
    configOptions: [
      ...offered.configOptions,
      {
        id: "thinking",
        category: "thought_level",
        currentValue: "off",
        options: values.map((value) => ({ value })),
      },
    ],
  });

  it("is set by the session's option for it", async () => {
    const fake = fakeAgent({
      onPrompt: async () => endTurn,
      newSession: option(["off", "high"]),
      launch: { effort: "high" },
    });
    const { scope } = await fake.start();
    expect(fake.choices).toEqual([
      {
        method: "session/set_config_option",
        params: { sessionId: "s1", configId: "thinking", value: "high" },
      },
    ]);
    await scope.close();
  });

  it.each([
    ["the model has others", option(["off", "low"]), "but off, low: change reasoningEffort"],
    ["the model has none", offered, "but none: change reasoningEffort"],
  ])("ends the run if %s", async (_what, newSession, why) => {
    const fake = fakeAgent({ onPrompt: async () => endTurn, newSession, launch: { effort: "high" } });
    await expect(fake.start()).rejects.toThrow(
      `doesn't offer the reasoning effort 'high' for this model, ${why}`,
    );
    expect(fake.choices).toEqual([]);
  });
});

describe("a server of the run's tools", () => {
  const server = (listed: boolean) => ({
    name: "ambit",
    url: "http://127.0.0.1:9/",
    headers: {},
    listed: () => listed,
  });
  const started = (listed: boolean) =>
    fakeAgent({
      onPrompt: async (turn) => {
        await turn.update(chunk("without"));
        return endTurn;
      },
      servers: { servers: [server(listed)] },
    }).start();

  it("that the agent never queried fails the turn, which would run without tools", async () => {
    const { agent, scope } = await started(false);
    const { error, events } = await failureOf(agent, turnOf());
    expect(error).toBeInstanceOf(HarnessFailed);
    expect(String(error)).toContain("never asked for the run's tools");
    expect(textOf(events)).toBe("without");
    await scope.close();
  });

  it("that it queried doesn't (the control)", async () => {
    const { agent, scope } = await started(true);
    expect(textOf(await eventsOf(agent, turnOf()))).toBe("without");
    await scope.close();
  });

  it("that it hides behind a search of its own is called by its name once it was found", async () => {
    const calls = [
      { toolCallId: "s", title: "ToolSearch", kind: "search", rawInput: { query: "lookup" } },
      { toolCallId: "c", title: "mcp__ambit__lookup", kind: "other", rawInput: { key: "k" } },
    ];
    const fake = fakeAgent({
      onPrompt: async (turn) => {
        for (const call of calls)
          await turn.update({ sessionUpdate: "tool_call", status: "completed", ...call });
        return endTurn;
      },
      servers: { servers: [server(true)] },
    });
    const { agent, scope } = await fake.start();
    const called = ofType(await eventsOf(agent, turnOf()), "tool_call");
    expect(called.map(({ name, input }) => ({ name, input }))).toEqual([
      { name: "ToolSearch", input: { query: "lookup" } },
      { name: "lookup", input: { key: "k" } },
    ]);
    await scope.close();
  });
});

describe("a turn with a trace", () => {
  it("passes its traceparent to the agent", async () => {
    const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const fake = fakeAgent({ onPrompt: async () => endTurn });
    const { agent, scope } = await fake.start();
    await eventsOf(agent, { ...turnOf(), traceparent }).catch(() => []);
    expect(fake.prompts).toMatchObject([{ _meta: { traceparent } }]);
    await scope.close();
  });
});
