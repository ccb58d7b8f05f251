import { isAbsolute } from "node:path";
import * as acp from "@agentclientprotocol/sdk/unstable";
import { failureText } from "./failure-text.js";
import { greeting, type Step } from "./grammar.js";
import { perform } from "./instructions/perform.js";
import type { Lifetime } from "./lifetime.js";
import { parseScript } from "./script.js";
import { DemoSession } from "./session.js";
import type { History, HistoryEntry, SessionStore } from "./sessions.js";
import { DemoTurn, promptText } from "./turn.js";

/**
 * The ACP v1 agent: implements the methods that it advertises, and no others.
 * @param asksFirst whether it asks for permission before each of its own tools.
 */
export function demoAgent(store: SessionStore, lifetime: Lifetime, asksFirst: boolean): acp.AgentApp {
  const sessions = new Map<string, DemoSession>();

  const sessionOf = (id: string): DemoSession => {
    const session = sessions.get(id);
    if (session === undefined) throw acp.RequestError.sessionNotFound(id);
    return session;
  };

  const close = async (id: string): Promise<void> => {
    const session = sessions.get(id);
    sessions.delete(id);
    session?.cancel();
    await session?.tools.close();
  };

  const open = (id: string, cwd: string, history: History, servers: readonly acp.McpServer[]): void => {
    sessions.set(id, new DemoSession(id, cwd, history, servers));
  };

  /** Reopens an earlier session; `session/load` and `session/resume` differ only in what is replayed. */
  const reopen = async (params: acp.LoadSessionRequest | acp.ResumeSessionRequest): Promise<History> => {
    const { sessionId, cwd } = params;
    requireAbsolute(cwd);
    const history = await store.load(sessionId);
    if (history === undefined) throw acp.RequestError.sessionNotFound(sessionId);
    await close(sessionId);
    open(sessionId, cwd, history, params.mcpServers ?? []);
    return history;
  };

  return acp
    .agent({ name: "ambit-agent-demo" })
    .onRequest("initialize", () => ({
      protocolVersion: acp.PROTOCOL_VERSION,
      agentInfo: { name: "ambit-agent-demo", title: "Ambit demo agent", version: "0.1.0" },
      agentCapabilities: {
        loadSession: true,
        mcpCapabilities: { http: true, sse: false },
        promptCapabilities: { image: true, audio: false, embeddedContext: true },
        sessionCapabilities: { close: {}, resume: {} },
      },
      authMethods: [],
      _meta: { steering: { supported: true } },
    }))
    .onRequest("session/new", async ({ params }) => {
      requireAbsolute(params.cwd);
      const { id, history } = store.create();
      open(id, params.cwd, history, params.mcpServers);
      await keep(history);
      return { sessionId: id };
    })
    .onRequest("session/load", async ({ params, client }) => {
      const history = await reopen(params);
      for (const entry of history.entries) {
        await client.notify("session/update", { sessionId: params.sessionId, update: replayed(entry) });
      }
      return {};
    })
    .onRequest("session/resume", async ({ params }) => {
      await reopen(params);
      return {};
    })
    .onRequest("session/close", async ({ params }) => {
      sessionOf(params.sessionId);
      await close(params.sessionId);
      return {};
    })
    .onRequest("session/prompt", async ({ params, client, signal }) => {
      const session = sessionOf(params.sessionId);
      if (session.running !== undefined) {
        throw acp.RequestError.invalidRequest(
          undefined,
          "a prompt is running in this session: cancel it first",
        );
      }
      const running = new AbortController();
      session.running = running;
      const turn = new DemoTurn(
        session,
        params.prompt,
        client,
        AbortSignal.any([running.signal, signal]),
        asksFirst,
      );
      try {
        return await promptResponse(turn, lifetime);
      } finally {
        session.running = undefined;
        await keep(session.history);
        for (const send of turn.afterAnswer)
          void send().catch((error: unknown) => process.stderr.write(`${failureText(error)}\n`));
      }
    })
    .onRequest("_session/steering", steering, ({ params: { sessionId, prompt } }) => {
      const session = sessionOf(sessionId);
      if (session.running === undefined) return { outcome: "promptRequired", reason: "noRunningTurn" };
      session.steer(promptText(prompt));
      return { outcome: "injected" };
    })
    .onNotification("session/cancel", ({ params }) => sessions.get(params.sessionId)?.cancel());
}

/** A message of the user for the turn that runs, as agents agree on it beside ACP. */
const steering = {
  parse: (params: unknown): Pick<acp.PromptRequest, "sessionId" | "prompt"> => {
    const { sessionId, prompt } = Object(params);
    if (typeof sessionId === "string" && Array.isArray(prompt)) return { sessionId, prompt };
    throw acp.RequestError.invalidParams(undefined, "sessionId and prompt are needed");
  },
};

async function promptResponse(turn: DemoTurn, lifetime: Lifetime): Promise<acp.PromptResponse> {
  const text = promptText(turn.prompt);
  turn.session.history.add({ kind: "user", text });
  void keep(turn.session.history);
  try {
    await awaitTools(turn);
    const script = scriptOf(text, turn.session);
    if (script.length === 0) await turn.say(greeting);
    for (let steps = script; steps.length > 0; ) {
      const [step, ...following] = steps;
      turn.signal.throwIfAborted();
      turn.session.unfinished = steps;
      if (step !== undefined) await perform(step, turn, lifetime);
      if (turn.stopReason !== undefined) break;
      // What the user says meanwhile comes next.
      steps = [...turn.session.steered.splice(0).flatMap(parseScript), ...following];
    }
    if (!turn.signal.aborted) turn.session.unfinished = [];
  } catch (error) {
    if (!turn.signal.aborted) throw error;
  }
  const stopReason = turn.signal.aborted ? "cancelled" : (turn.stopReason ?? "end_turn");
  return { stopReason, usage: turn.usage() };
}

/** How Ambit says that the user has answered what the last turn waited for. A model understands it in any words. */
const answered = /^The user has answered\b/;

/** The prompt's own script, or the unfinished one where the user's answer continues it. */
function scriptOf(text: string, { unfinished }: DemoSession): readonly Step[] {
  const script = parseScript(text);
  return script.length === 0 && answered.test(text) ? unfinished : script;
}

/** A model needs its tools before it can start, so a real agent waits for them here. */
async function awaitTools(turn: DemoTurn): Promise<void> {
  const { failures } = await turn.orAbort(turn.session.tools.survey());
  if (turn.session.surveyed) return;
  turn.session.surveyed = true;
  for (const failure of failures) await turn.sayLine(failure);
}

/** Saves a history. If its home can't be written, the session continues but can't be loaded later. */
async function keep(history: History): Promise<void> {
  try {
    await history.save();
  } catch (error) {
    process.stderr.write(`The session isn't saved: ${failureText(error)}\n`);
  }
}

function requireAbsolute(cwd: string): void {
  if (!isAbsolute(cwd)) throw acp.RequestError.invalidParams({ cwd }, "cwd must be an absolute path");
}

function replayed(entry: HistoryEntry): acp.SessionUpdate {
  if (entry.kind === "tool") {
    const { toolCallId, title, failed, text } = entry;
    const content: acp.ToolCallContent[] = [{ type: "content", content: { type: "text", text } }];
    return {
      sessionUpdate: "tool_call",
      toolCallId,
      title,
      status: failed ? "failed" : "completed",
      content,
    };
  }
  const content = { type: "text" as const, text: entry.text };
  switch (entry.kind) {
    case "user":
      return { sessionUpdate: "user_message_chunk", content };
    case "message":
      return { sessionUpdate: "agent_message_chunk", content };
    case "thought":
      return { sessionUpdate: "agent_thought_chunk", content };
  }
}
