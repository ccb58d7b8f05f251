import { HarnessFailed } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { chunk, endTurn, fakeAgent } from "../support/fake-agent.js";
import { eventsOf, textOf, turnOf } from "../support/runs.js";

describe("the start", () => {
  it.each([
    { what: "no object", initialize: null, says: "initialize" },
    { what: "another protocol version", initialize: { protocolVersion: 2 }, says: "version 1 is needed" },
    { what: "no protocol version", initialize: { hello: 1 }, says: "protocolVersion" },
  ])("refuses $what", async ({ initialize, says }) => {
    // null stands for an answer of null, which the fake's default would replace.
    const fake = fakeAgent({ onPrompt: async () => endTurn, initialize: initialize ?? [] });
    const error = await fake.start().then(
      () => undefined,
      (failure: unknown) => failure,
    );
    expect(error).toBeInstanceOf(HarnessFailed);
    expect(error).toMatchObject({ message: expect.stringContaining(says) });
    expect(await fake.exit).toMatchObject({ signal: "SIGKILL" });
  });

  it("takes nulls where an agent means nothing", async () => {
    const agentCapabilities = { loadSession: null, promptCapabilities: null, mcpCapabilities: null };
    const fake = fakeAgent({
      onPrompt: async () => endTurn,
      initialize: { protocolVersion: 1, agentCapabilities, agentInfo: null, authMethods: null },
      newSession: { sessionId: "s1", models: null, configOptions: null },
    });
    const { agent, scope } = await fake.start();
    expect(agent.capabilities).toMatchObject({ images: false, mcpTools: false, sessionLifecycle: false });
    await scope.close();
  });

  it.each([
    { what: "no way to resume", sessionCapabilities: { list: {} }, takesUp: false },
    { what: "a way to resume", sessionCapabilities: { list: {}, resume: {} }, takesUp: true },
    { what: "none at all", sessionCapabilities: {}, takesUp: false },
  ])("takes an agent whose session capabilities name $what", async ({ sessionCapabilities, takesUp }) => {
    const fake = fakeAgent({
      onPrompt: async () => endTurn,
      initialize: { protocolVersion: 1, agentCapabilities: { sessionCapabilities }, agentInfo: {} },
      newSession: { sessionId: "s1", configOptions: [{ category: "model" }] },
    });
    const { agent, scope } = await fake.start();
    expect(agent.capabilities.sessionLifecycle).toBe(takesUp);
    await scope.close();
  });

  it("refuses a session without an id", async () => {
    const fake = fakeAgent({ onPrompt: async () => endTurn, newSession: {} });
    await expect(fake.start()).rejects.toThrow("sessionId");
  });

  it("refuses tools for an agent that can't receive them, instead of dropping them", async () => {
    const server = { name: "ambit", url: "http://127.0.0.1:1/mcp", headers: {}, listed: () => false };
    const initialize = { protocolVersion: 1, agentCapabilities: {} };
    const fake = fakeAgent({ onPrompt: async () => endTurn, initialize, servers: { servers: [server] } });
    await expect(fake.start()).rejects.toThrow("can't receive tools");
  });

  it("swallows what a loaded session replays", async () => {
    const fake = fakeAgent({
      resume: "s0",
      onLoad: async (turn) => {
        await turn.update(chunk("replayed"));
        return {};
      },
      onPrompt: async (turn) => {
        await turn.update(chunk("new"));
        return endTurn;
      },
    });
    const { agent, scope } = await fake.start();
    expect(agent.history).toBe("loaded");
    expect(textOf(await eventsOf(agent, turnOf()))).toBe("new");
    await scope.close();
  });

  it("swallows what an agent replays late, when its profile says that it does", async () => {
    const quirks = {
      savesBeforeAnswering: true,
      promptsBeforeTools: false,
      replaysLate: true,
      failureMeta: [],
    };
    const fake = fakeAgent({
      resume: "s0",
      profile: { quirks },
      onLoad: async (turn) => {
        const replay = async () => {
          for (let count = 0; count < 50; count += 1) await turn.update(chunk(`replayed ${count}`));
        };
        void replay();
        return {};
      },
      onPrompt: async (turn) => {
        await turn.update(chunk("new"));
        return endTurn;
      },
    });
    const { agent, scope } = await fake.start();
    expect(textOf(await eventsOf(agent, turnOf()))).toBe("new");
    await scope.close();
  });
});
