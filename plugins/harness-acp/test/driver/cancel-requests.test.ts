import { once } from "node:events";
import { RunCancelled } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { chunk, endTurn, type FakeAgentOptions, fakeAgent } from "../support/fake-agent.js";
import { eventsOf, textOf, turnOf } from "../support/runs.js";

const cancelled = { type: "done", stopReason: "cancelled" };
const never = () => new Promise<never>(() => {});

/** Starts an agent that never answers one of the requests of its start, and stops the start there. */
async function stopStart(silent: string, options: Partial<FakeAgentOptions>) {
  let reach = (_: AbortSignal) => {};
  const reached = new Promise<AbortSignal>((resolve) => {
    reach = resolve;
  });
  const fake = fakeAgent({
    onPrompt: async () => endTurn,
    onSessionRequest: async (method, signal) => {
      if (method !== silent) return;
      reach(signal);
      await never();
    },
    ...options,
  });
  const starting = fake.start();
  const failure = expect(starting).rejects.toThrow("no longer wanted");
  const cancelRequest = await reached;
  const whenCancelled = once(cancelRequest, "abort");
  fake.scope()?.stop(new RunCancelled("no longer wanted"));
  await failure;
  await whenCancelled;
  return cancelRequest;
}

describe("an abandoned request is cancelled by $/cancel_request", () => {
  it.each([
    { method: "session/new", options: {} },
    { method: "session/load", options: { resume: "s0" } },
    { method: "session/set_model", options: { launch: { session: { model: "large" } } } },
  ])("$method, if the start is stopped", async ({ method, options }) => {
    expect((await stopStart(method, options)).aborted).toBe(true);
  });

  it("session/close, if it isn't answered in time", async () => {
    let cancelRequest: AbortSignal | undefined;
    const fake = fakeAgent({
      onPrompt: async () => endTurn,
      onSessionRequest: async (method, signal) => {
        if (method !== "session/close") return;
        cancelRequest = signal;
        await never();
      },
      initialize: {
        protocolVersion: 1,
        agentCapabilities: { loadSession: true, sessionCapabilities: { close: {} } },
      },
      profile: { quirks: lateSaver },
      limits: { closeMs: 20 },
      request: { sessionId: "named" },
    });
    const { agent, scope } = await fake.start();
    await agent.close();
    await expect.poll(() => cancelRequest?.aborted).toBe(true);
    await scope.close();
  });

  const deafTurn = (endsOnRequest: boolean) => {
    const abort = new AbortController();
    const fake = fakeAgent({
      onPrompt: async ({ update, cancelRequest }) => {
        if (fake.prompts.length > 1) {
          await update(chunk("going on"));
          return endTurn;
        }
        abort.abort(new RunCancelled("stop"));
        await (endsOnRequest ? once(cancelRequest, "abort") : never());
        return { stopReason: "cancelled" };
      },
      limits: { cancelMs: 200 },
    });
    return { fake, abort };
  };

  it("session/prompt, if session/cancel doesn't end it: the agent serves the next turn", async () => {
    const { fake, abort } = deafTurn(true);
    const { agent, scope } = await fake.start();
    expect(await eventsOf(agent, turnOf({ signal: abort.signal }))).toEqual([cancelled]);
    expect(agent.ended()).toBe(false);
    expect(textOf(await eventsOf(agent, turnOf()))).toBe("going on");
    await scope.close();
  });

  it("session/prompt of an agent that ignores it: killed (the control)", async () => {
    const { fake, abort } = deafTurn(false);
    const { agent, scope } = await fake.start();
    expect(await eventsOf(agent, turnOf({ signal: abort.signal }))).toEqual([cancelled]);
    expect(agent.ended()).toBe(true);
    expect(await fake.exit).toMatchObject({ signal: "SIGKILL" });
    await scope.close();
  });

  it("nothing else if session/cancel was enough", async () => {
    const abort = new AbortController();
    let prompt: AbortSignal | undefined;
    const fake = fakeAgent({
      onPrompt: async ({ signal, cancelRequest }) => {
        prompt = cancelRequest;
        abort.abort(new RunCancelled("stop"));
        await once(signal, "abort");
        return { stopReason: "cancelled" };
      },
      limits: { cancelMs: 60_000 },
    });
    const { agent, scope } = await fake.start();
    expect(await eventsOf(agent, turnOf({ signal: abort.signal }))).toEqual([cancelled]);
    expect(prompt?.aborted).toBe(false);
    await scope.close();
  });
});

const lateSaver = {
  savesBeforeAnswering: false,
  promptsBeforeTools: false,
  replaysLate: false,
  staysInOrder: true,
  failureMeta: [],
};
