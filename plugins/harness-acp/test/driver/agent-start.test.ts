import { HarnessFailed } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { chunk, endTurn, fakeAgent } from "../support/fake-agent.js";
import { eventsOf, textOf, turnOf } from "../support/runs.js";

describe("the start of an agent", () => {
  it.each([
    { what: "no object", initialize: null, says: "initialize" },
    { what: "another protocol version", initialize: { protocolVersion: 2 }, says: "version 1 is needed" },
    { what: "no protocol version", initialize: { hello: 1 }, says: "protocolVersion" },
  ])("refuses $what", async ({ initialize, says }) => {
    // null means a response of null, which the fake's default would replace.
    const fake = fakeAgent({ onPrompt: async () => endTurn, initialize: initialize ?? [] });
    const error = await fake.start().then(
      () => undefined,
      (failure: unknown) => failure,
    );
    expect(error).toBeInstanceOf(HarnessFailed);
    expect(error).toMatchObject({ message: expect.stringContaining(says) });
    expect(await fake.exit).toMatchObject({ signal: "SIGKILL" });
  });

  it("accepts null for an absent value", async () => {
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
    { what: "no way to resume", sessionCapabilities: { list: {} }, resumes: false },
    { what: "a way to resume", sessionCapabilities: { list: {}, resume: {} }, resumes: true },
    { what: "none at all", sessionCapabilities: {}, resumes: false },
  ])("accepts an agent whose session capabilities have $what", async ({ sessionCapabilities, resumes }) => {
    const fake = fakeAgent({
      onPrompt: async () => endTurn,
      initialize: { protocolVersion: 1, agentCapabilities: { sessionCapabilities }, agentInfo: {} },
      newSession: { sessionId: "s1", configOptions: [{ category: "model" }] },
    });
    const { agent, scope } = await fake.start();
    expect(agent.capabilities.sessionLifecycle).toBe(resumes);
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

  it.each([
    ["the tested one", { installed: "1.2.0", tested: "1.2.0" }, { version: "1.2.0" }],
    ["another one", { installed: "1.3.0", tested: "1.2.0" }, { version: "1.3.0", testedVersion: "1.2.0" }],
    ["as it reports it", { tested: "1.2.0" }, { version: "9.9.9", testedVersion: "1.2.0" }],
  ])("has its version in its evidence: %s", async (_what, versions, evidence) => {
    const initialize = { protocolVersion: 1, agentInfo: { name: "fake", version: "9.9.9" } };
    const fake = fakeAgent({ initialize, versions, onPrompt: async () => endTurn });
    const { agent, scope } = await fake.start();
    expect(agent.evidence).toEqual(evidence);
    await scope.close();
  });

  it("discards what a loaded session replays", async () => {
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

  it("discards 150,000 updates that a loaded session replays, and goes on", async () => {
    const fake = fakeAgent({
      resume: "s0",
      onLoad: async ({ sessionId, piece }) => {
        const params = { sessionId, update: chunk("replayed") };
        const line = `${JSON.stringify({ jsonrpc: "2.0", method: "session/update", params })}\n`;
        for (let written = 0; written < 150_000; written += 1_000) await piece(line.repeat(1_000));
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
  }, 60_000);

  it("discards what an agent replays late, if its profile says that it does", async () => {
    const quirks = {
      savesBeforeAnswering: true,
      promptsBeforeTools: false,
      replaysLate: true,
      staysInOrder: true,
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
