import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  allOf,
  bodyOf,
  demo,
  isMessage,
  ndjson,
  readUntil,
  recordsOf,
  resultOf,
  type Server,
  serve,
  startServer,
} from "./support/ambit.js";
import { callbackServer, callbackTool } from "./support/callback-server.js";
import { shortLimits } from "./support/configurations.js";

let server: Server;
const post: Server["post"] = (...call) => server.post(...call);

beforeAll(async () => {
  // With nothing but defaults.
  server = await startServer({}, []);
  return () => void server.process.kill("SIGKILL");
});

describe("a run of the demo agent", () => {
  it("answers in all three forms", async () => {
    const request = demo("think hm", "say hello");
    const once = await bodyOf(await post("/run", request));
    expect(once).toMatchObject({
      ok: true,
      output: "hello",
      stopReason: "end_turn",
      receipt: { sandbox: "local" },
    });

    const records = await allOf(recordsOf(await post("/run", request, ndjson)));
    expect(records.filter(({ kind }) => kind === "result")).toHaveLength(1);
    expect(records.at(-1)).toMatchObject({
      kind: "result",
      result: { ok: true, output: "hello", events: [] },
    });

    const events = await (await post("/run", request, { accept: "text/event-stream" })).text();
    const data = [...events.matchAll(/^data: (.*)$/gm)].map(([, json = ""]) => JSON.parse(json));
    expect(data.at(-1)).toMatchObject({ kind: "result", result: { ok: true, output: "hello" } });
  });

  it("delegates to a subagent, whose work is nested under the call", async () => {
    const result = await bodyOf(await post("/run", demo("delegate say I look.\\nread none.txt", "say done")));
    expect(result).toMatchObject({ ok: true, output: "done" });
    const { events } = z.object({ events: z.array(z.looseObject({ type: z.string() })) }).parse(result);
    const [delegate, read] = events.filter(({ type }) => type === "tool_call");
    expect(delegate).toMatchObject({ name: "delegate" });
    const within = { parentToolCallId: delegate?.id };
    expect(read).toMatchObject({ name: "read", ...within });
    expect(events.filter(({ type }) => type === "message")).toEqual([
      { type: "message", text: "I look.", ...within },
      { type: "message", text: "done" },
    ]);
  });

  it("calls a callback tool, with arguments and response unchanged", async () => {
    const platform = await callbackServer((_name, given) => ({ echo: given }));
    const result = await bodyOf(
      await post("/run", {
        ...demo('call weather {"city": "Bern"}'),
        customTools: [
          callbackTool("weather", {
            description: "Tells the weather",
            render: { kind: "component", component: "W" },
          }),
        ],
        toolCallback: { endpoint: platform.endpoint, authorization: "Access tok-123456" },
      }),
    );
    expect(platform.calls).toEqual([
      { name: "ref__weather", arguments: { city: "Bern" }, authorization: "Access tok-123456" },
    ]);
    expect(result.events).toContainEqual(
      expect.objectContaining({
        type: "tool_call",
        name: "weather",
        input: { city: "Bern" },
        render: { kind: "component", component: "W" },
      }),
    );
    const outcome = result.events.find(({ type }) => type === "tool_result");
    expect(JSON.stringify(outcome)).toContain("Bern");
    expect(JSON.stringify(result)).not.toContain("tok-123456");
  });

  it("calls only what another platform's policy permits behind one tool", async () => {
    const platform = await callbackServer(() => "listed");
    const call = (tool: string) =>
      `call run_tool {"integration": "github", "tool": "${tool}", "arguments": {}}`;
    const tools = { LIST: { permission: "allow" }, DELETE: { permission: "deny" } };
    const request = {
      ...demo(call("LIST"), call("DELETE")),
      customTools: [{ name: "run_tool", callRef: "gateway.run", permission: "allow" }],
      toolCallback: { endpoint: platform.endpoint },
    };
    const github = { provider: "p", connection: "main", toolkitVersion: "1", tools };
    const result = await bodyOf(
      await post("/run", { ...request, gatewayPolicy: { integrations: { github } } }),
    );
    expect(platform.calls).toMatchObject([{ name: "gateway.run", arguments: { tool: "LIST" } }]);
    expect(JSON.stringify(result.events)).toContain("isn't available here");
    const refused = await bodyOf(await post("/run", request));
    expect(refused.failure?.issues).toMatchObject([{ path: "customTools[0].callRef" }]);
  });

  it("keeps a named session's workspace between runs, and ends it with /kill", async () => {
    const inSession = (...script: string[]) => ({ ...demo(...script), sessionId: "kept" });
    await bodyOf(await post("/run", inSession("write a.txt first")));
    const second = await bodyOf(await post("/run", inSession("read a.txt", "recall")));
    expect(JSON.stringify(second.events)).toContain("first");
    expect(await bodyOf(await post("/kill", { sessionId: "kept" }))).toEqual({ ok: true, ended: true });
    const third = await bodyOf(await post("/run", inSession("read a.txt")));
    expect(third.events).toContainEqual(expect.objectContaining({ type: "tool_result", isError: true }));
  });

  it("pauses for a permission, and continues with the answer", async () => {
    const platform = await callbackServer(() => "sent");
    const request = {
      ...demo('call mail {"to": "a"}'),
      customTools: [callbackTool("mail", { permission: "ask" })],
      toolCallback: { endpoint: platform.endpoint },
      sessionId: "asking",
    };
    const ask = async () => {
      const paused = await bodyOf(await post("/run", request));
      expect(paused).toMatchObject({ ok: true, stopReason: "paused" });
      expect(platform.calls).toEqual([]);
      const asked = paused.events.find((event) => event.type === "interaction_request");
      const payload = { toolName: "mail", input: { to: "a" } };
      expect(asked).toMatchObject({ kind: "user_approval", payload });
      return z.object({ toolCallId: z.string() }).parse(asked?.payload).toolCallId;
    };
    const answer = (toolCallId: string, approved: boolean) => ({
      ...request,
      messages: [
        ...request.messages,
        {
          role: "assistant",
          content: [{ type: "tool_call", toolCallId, toolName: "mail", input: { to: "a" } }],
        },
        { role: "tool", content: [{ type: "tool_result", toolCallId, output: { approved } }] },
        { role: "user", content: 'call mail {"to": "a"}' },
      ],
    });
    const denied = await bodyOf(await post("/run", answer(await ask(), false)));
    expect(denied.events).toContainEqual(expect.objectContaining({ type: "tool_result", denied: true }));
    expect(platform.calls).toEqual([]);
    const toolCallId = await ask();
    const approved = await bodyOf(await post("/run", answer(toolCallId, true)));
    expect(approved).toMatchObject({ ok: true, stopReason: "end_turn" });
    expect(platform.calls).toHaveLength(1);
    const again = await bodyOf(await post("/run", answer(toolCallId, true)));
    expect(again).toMatchObject({ ok: true, stopReason: "paused" });
    expect(platform.calls).toHaveLength(1);
  });

  it("gets a live answer while it holds a call open", async () => {
    const platform = await callbackServer(() => "sent");
    const response = await post(
      "/run",
      {
        ...demo('call mail {"to": "a"}', "say done"),
        customTools: [callbackTool("mail", { permission: "ask" })],
        toolCallback: { endpoint: platform.endpoint },
        interactions: { waitMs: 15_000 },
      },
      ndjson,
    );
    const runId = response.headers.get("x-ambit-run-id");
    const records = recordsOf(response);
    const asked = await readUntil(records, isMessage('"interaction_request"'));
    const id = asked.kind === "event" && asked.event.type === "interaction_request" ? asked.event.id : "";
    const answer = (interaction: string, body: unknown) =>
      post(`/runs/${runId}/interactions/${interaction}`, body);
    expect((await answer("another", { approved: true })).status).toBe(404);
    expect((await answer(id, { approved: "yes" })).status).toBe(400);
    expect(platform.calls).toEqual([]);
    expect(await (await answer(id, { approved: true })).json()).toEqual({ ok: true });
    expect(await resultOf(records)).toMatchObject({ ok: true, stopReason: "end_turn", output: "done" });
    expect(platform.calls).toHaveLength(1);
  });

  it("reports an agent's own failure in its result", async () => {
    const failed = await post("/run", demo("say before", "fail no luck"));
    expect(failed.status).toBe(502);
    expect(await failed.json()).toMatchObject({
      ok: false,
      output: "before",
      error: expect.stringContaining("no luck"),
    });
  });

  it("reports an agent that crashes", async () => {
    const crashed = await post("/run", demo("crash out of memory"));
    expect(crashed.status).toBe(502);
    expect(await crashed.json()).toMatchObject({ failure: { code: "harness_failed" } });
    // There is nothing to wait for: a dead agent is closed at once.
    expect(server.log()).not.toContain("closing took too long");
  });

  it("times out, with the limit in the message", async () => {
    const { post } = await serve({}, shortLimits);
    const response = await post("/run", demo("say one", "hang"), ndjson);
    const result = await resultOf(recordsOf(response));
    expect(result).toMatchObject({ ok: false, failure: { code: "run_timed_out", retryable: true } });
    expect(result.error).toMatch(/1 s|1\.5 s/);
  });
});
