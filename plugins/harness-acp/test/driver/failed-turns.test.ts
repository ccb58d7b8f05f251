import { RequestError } from "@agentclientprotocol/sdk/unstable";
import { HarnessFailed, ModelFailed, RunCancelled } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { defaultDriverLimits } from "../../src/driver/limits.js";
import { chunk, endTurn, fakeAgent } from "../support/fake-agent.js";
import { eventsFor, failureFor } from "../support/fake-turns.js";
import { failureOf, textOf, turnOf } from "../support/runs.js";

describe("failed turns", () => {
  it.each<{
    readonly what: string;
    readonly error: readonly [code: number, message: string, data?: unknown];
    readonly retryable: boolean;
    readonly upstreamStatus?: number;
  }>([
    {
      what: "401 in the code (Gemini)",
      error: [401, '{"error":{"message":"bad key"}}'],
      retryable: false,
      upstreamStatus: 401,
    },
    {
      what: "429 in the code (Gemini)",
      error: [429, "Rate limit exceeded"],
      retryable: true,
      upstreamStatus: 429,
    },
    {
      what: "500 in the code, with a body (Gemini)",
      error: [500, '{"error":{"message":"x"}}'],
      retryable: true,
      upstreamStatus: 500,
    },
    { what: "500 in the code, without a response (Gemini)", error: [500, "terminated"], retryable: true },
    { what: "auth required", error: [-32000, "Authentication required"], retryable: false },
    {
      what: "errorKind (Claude)",
      error: [-32603, "Internal error", { errorKind: "rate_limit" }],
      retryable: true,
    },
    { what: "errorName (OpenCode)", error: [-32603, "x", { errorName: "APIError" }], retryable: false },
    {
      what: "codex_error_info (Codex)",
      error: [-32603, "x", { codex_error_info: { http_connection_failed: {} } }],
      retryable: true,
    },
    { what: "a status in data", error: [-32603, "x", { status: 503 }], retryable: true, upstreamStatus: 503 },
  ])(
    "$what is a failure of the model",
    async ({ error: [code, message, data], retryable, upstreamStatus }) => {
      const { error } = await failureFor(() => Promise.reject(new RequestError(code, message, data)));
      expect(error).toBeInstanceOf(ModelFailed);
      expect(error).toMatchObject({ retryable, upstreamStatus });
    },
  );

  it.each([
    { what: "an internal error of its own", code: -32603 },
    { what: "a refused parameter", code: -32602 },
    { what: "an unknown method", code: -32601 },
  ])("$what is a failure of the harness, with its message", async ({ code }) => {
    const { error } = await failureFor(() => Promise.reject(new RequestError(code, "its words")));
    expect(error).toBeInstanceOf(HarnessFailed);
    expect(error).toMatchObject({ message: expect.stringContaining("its words") });
  });

  it("a large response in an error isn't read, nor are those within it", async () => {
    let message = "x".repeat(100_000);
    for (let level = 0; level < 5; level += 1) message = JSON.stringify({ message });
    const { error } = await failureFor(() => Promise.reject(new RequestError(401, message)));
    expect(error).toBeInstanceOf(ModelFailed);
    // The control: as it is with a short one.
    const short = JSON.stringify({ message: JSON.stringify({ message: "its words" }) });
    const { error: other } = await failureFor(() => Promise.reject(new RequestError(401, short)));
    expect(other).toMatchObject({ message: expect.stringMatching(/401: its words$/) });
    expect(error).toMatchObject({ message: expect.stringContaining(`401: ${message.slice(0, 100)}`) });
  });

  it("an end_turn without text, calls or usage isn't a success", async () => {
    const { error } = await failureFor(async () => ({ stopReason: "end_turn" }));
    expect(error).toBeInstanceOf(ModelFailed);
  });

  it("an end_turn without text but with usage is a success", async () => {
    const { events } = await eventsFor(async () => endTurn);
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "end_turn" });
  });

  it("another stop reason without text is passed on", async () => {
    const { events } = await eventsFor(async () => ({ stopReason: "refusal" }));
    expect(events).toEqual([{ type: "done", stopReason: "refusal" }]);
  });

  it("an end_turn that _meta marks as a failure isn't a success (Codex)", async () => {
    const place = { path: ["codex", "threadStatus", "type"], failed: "systemError" };
    const quirks = {
      savesBeforeAnswering: true,
      promptsBeforeTools: false,
      replaysLate: false,
      staysInOrder: true,
      failureMeta: [place],
    };
    const fake = fakeAgent({
      profile: { quirks },
      onPrompt: async (turn) => {
        await turn.update(chunk("stream error: 429 Too Many Requests"));
        const _meta = { codex: { threadStatus: { type: "systemError" } } };
        await turn.update({ sessionUpdate: "session_info_update", _meta });
        return endTurn;
      },
    });
    const { agent, scope } = await fake.start();
    const { error } = await failureOf(agent, turnOf());
    expect(error).toBeInstanceOf(ModelFailed);
    expect(error).toMatchObject({ message: expect.stringContaining("429 Too Many Requests") });
    await scope.close();
  });

  it("a message of 40 MB fails the turn, and the runner continues", async () => {
    const { messageCharacters } = defaultDriverLimits;
    const fake = fakeAgent({
      limits: { messageCharacters },
      onPrompt: async (turn) => {
        await turn.update(chunk("x".repeat(40_000_000)));
        return endTurn;
      },
    });
    const { agent, scope } = await fake.start();
    const { error } = await failureOf(agent, turnOf());
    expect(error).toBeInstanceOf(HarnessFailed);
    expect(String(error)).toContain(`more than ${messageCharacters.toLocaleString("en")} characters`);
    await scope.close();
  });

  it("a malformed response is a failure of the harness", async () => {
    const { error } = await failureFor(async () => ({ hello: 1 }));
    expect(error).toBeInstanceOf(HarnessFailed);
    expect(error).toMatchObject({ message: expect.stringContaining("stopReason") });
  });

  it("an exit during a turn is reported with its code", async () => {
    const { error, events } = await failureFor(async (turn) => {
      await turn.update(chunk("so far"));
      return await turn.exit(3);
    });
    expect(error).toBeInstanceOf(HarnessFailed);
    expect(error).toMatchObject({ message: expect.stringContaining("exit code 3") });
    expect(textOf(events)).toBe("so far");
  });

  it("an agent that answers a cancel with an error counts as cancelled, and keeps running", async () => {
    const abort = new AbortController();
    const fake = fakeAgent({
      onPrompt: async (turn) => {
        if (turn.signal.aborted) return endTurn;
        await turn.update(chunk("x"));
        await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
        throw new RequestError(-32800, "Request cancelled");
      },
    });
    const { agent, scope } = await fake.start();
    const events = [];
    for await (const event of agent.prompt(turnOf({ signal: abort.signal }))) {
      events.push(event);
      if (event.type === "message_delta") abort.abort(new RunCancelled("cancelled"));
    }
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "cancelled" });
    await scope.close();
    expect(fake.received).toEqual(["session/cancel"]);
  });

  it("an agent that doesn't end a cancelled turn is killed", async () => {
    const abort = new AbortController();
    const fake = fakeAgent({
      limits: { cancelMs: 20 },
      onPrompt: async (turn) => {
        await turn.update(chunk("x"));
        return await new Promise(() => {});
      },
    });
    const { agent, scope } = await fake.start();
    const events = [];
    for await (const event of agent.prompt(turnOf({ signal: abort.signal }))) {
      events.push(event);
      if (event.type === "message_delta") abort.abort(new RunCancelled("cancelled"));
    }
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "cancelled" });
    expect(await fake.exit).toEqual({ code: null, signal: "SIGKILL" });
    await scope.close();
  });
});
