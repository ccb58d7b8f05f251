import type { InputAnswer, InputQuestion } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { endTurn, fakeAgent } from "../support/fake-agent.js";
import { eventsOf, turnOf } from "../support/runs.js";

const form = {
  mode: "form",
  message: "Which branch?",
  requestedSchema: { type: "object", properties: { branch: { type: "string" } }, required: ["branch"] },
};
const page = { mode: "url", elicitationId: "e1", message: "Sign in.", url: "https://example.com/login" };

/** The response to the agent's question, and the question that the run got. */
async function asked(params: object, answer: InputAnswer | (() => Promise<InputAnswer>)) {
  const received: unknown[] = [];
  const questions: InputQuestion[] = [];
  const fake = fakeAgent({
    onPrompt: async ({ elicit }) => {
      received.push(await elicit(params));
      return endTurn;
    },
  });
  const { agent, scope } = await fake.start();
  const onInput = async (question: InputQuestion) => {
    questions.push(question);
    return typeof answer === "function" ? await answer() : answer;
  };
  const events = await eventsOf(agent, turnOf({ onInput }));
  await scope.close();
  return { received, questions, events, greetings: fake.greetings };
}

describe("a question of an agent to its user", () => {
  it("is a form, which the client announced to support, and its values are returned", async () => {
    const { received, questions, greetings } = await asked(form, {
      action: "accept",
      content: { branch: "main" },
    });
    expect(greetings).toMatchObject([{ clientCapabilities: { elicitation: { form: {}, url: {} } } }]);
    expect(questions).toEqual([{ message: "Which branch?", form: form.requestedSchema }]);
    expect(received).toEqual([{ action: "accept", content: { branch: "main" } }]);
  });

  it("is a page to visit", async () => {
    const { received, questions } = await asked(page, { action: "accept", content: {} });
    expect(questions).toEqual([{ message: "Sign in.", url: page.url }]);
    expect(received).toEqual([{ action: "accept" }]);
  });

  it("may be declined", async () => {
    expect((await asked(form, { action: "decline" })).received).toEqual([{ action: "decline" }]);
  });

  it("pauses the turn if the answer comes later", async () => {
    const { received, events } = await asked(form, "park");
    expect(received).toEqual([{ action: "cancel" }]);
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "paused" });
  });

  it.each([
    { what: "of another mode", params: { ...form, mode: "voice" } },
    { what: "that no browser opens", params: { ...page, url: "file:///etc/passwd" } },
    { what: "that would run a script", params: { ...page, url: "javascript:alert(1)" } },
    {
      what: "with nested values",
      params: { ...form, requestedSchema: { type: "object", properties: { a: { type: "object" } } } },
    },
    { what: "that is too long", params: { ...form, message: "x".repeat(70_000) } },
  ])("isn't shown to a user if it is one $what", async ({ params }) => {
    const { received, questions } = await asked(params, { action: "accept", content: {} });
    expect(received).toEqual([{ action: "cancel" }]);
    expect(questions).toEqual([]);
  });

  it("ends when the agent withdraws it, for its user too", async () => {
    const taken = new AbortController();
    const fake = fakeAgent({
      onPrompt: async ({ elicit }) => {
        await elicit(form, taken.signal).catch(() => undefined);
        return endTurn;
      },
    });
    const { agent, scope } = await fake.start();
    const withdrawals: unknown[] = [];
    const onInput = (_question: InputQuestion, withdrawn?: AbortSignal) => {
      withdrawn?.addEventListener("abort", () => withdrawals.push("withdrawn"), { once: true });
      taken.abort();
      return new Promise<InputAnswer>(() => {});
    };
    const events = await eventsOf(agent, turnOf({ onInput }));
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "end_turn" });
    expect(withdrawals).toEqual(["withdrawn"]);
    await scope.close();
  });
});

describe("session/close", () => {
  const sessionCapabilities = { close: {} };
  it.each([
    {
      what: "is sent to an agent that supports session/close",
      capabilities: { sessionCapabilities },
      sent: 1,
    },
    { what: "isn't sent to one that doesn't", capabilities: {}, sent: 0 },
  ])("$what", async ({ capabilities, sent }) => {
    const fake = fakeAgent({
      onPrompt: async () => endTurn,
      initialize: { protocolVersion: 1, agentCapabilities: { loadSession: true, ...capabilities } },
      profile: {
        quirks: {
          savesBeforeAnswering: false,
          promptsBeforeTools: false,
          replaysLate: false,
          staysInOrder: true,
          failureMeta: [],
        },
      },
      limits: { closeMs: 500 },
      request: { sessionId: "named" },
    });
    const { agent, scope } = await fake.start();
    await agent.close();
    expect(fake.closed).toEqual(Array(sent).fill({ sessionId: "s1" }));
    await scope.close();
  });
});
