import { describe, expect, it } from "vitest";
import { RunTrace } from "../src/trace/run-trace.js";
import type { EndedSpan } from "../src/trace/span.js";
import { observed, result } from "./support/runs.js";

function traced() {
  const spans: EndedSpan[] = [];
  const trace = new RunTrace(observed({}), (span) => spans.push(span));
  trace.entered("streaming");
  const named = (name: string) => spans.filter((span) => span.name === name);
  return { trace, spans, named };
}

const request = (id: string) =>
  ({ type: "interaction_request", id, kind: "user_approval", payload: {} }) as const;
const response = (id: string, approved: boolean) =>
  ({ type: "interaction_response", id, kind: "user_approval", payload: { approved } }) as const;

describe("the span of a call", () => {
  it("is one where its user is asked, under another id, with the wait inside it", () => {
    const { trace, spans, named } = traced();
    trace.happened({ type: "tool_call", id: "agents", name: "send" });
    trace.callRenamed("agents", "ask_1");
    trace.happened({ type: "tool_result", id: "agents", output: "DEFERRED_NOT_EXECUTED", isError: true });
    trace.happened({ type: "tool_call", id: "ask_1", name: "send", input: {} });
    trace.happened(request("ask_1"));
    trace.happened(response("ask_1", true));
    // It is executed under the id that it had first.
    const sent = trace.traceparent({ id: "agents", name: "send" });
    trace.happened({ type: "tool_result", id: "ask_1", output: "sent" });
    trace.ended(result);

    expect(spans.filter(({ name }) => name.startsWith("execute_tool"))).toHaveLength(1);
    const [call] = named("execute_tool send");
    const [wait] = named("wait_for_user user_approval");
    expect(call).toMatchObject({
      error: undefined,
      attributes: { "gen_ai.tool.name": "send", "gen_ai.tool.call.id": "ask_1" },
    });
    expect(wait).toMatchObject({
      parent: { spanId: call?.spanId },
      attributes: { "ambit.interaction.kind": "user_approval", "ambit.interaction.approved": true },
    });
    expect(sent).toContain(call?.spanId);
    expect(wait?.start).toBeGreaterThanOrEqual(call?.start ?? 0);
    expect(wait?.end).toBeLessThanOrEqual(call?.end ?? 0);
  });

  it("has its tool's name where the call reaches the runner before the agent's report of it", () => {
    const { trace, spans } = traced();
    const sent = trace.traceparent({ id: "ours", name: "look_up" });
    trace.callRenamed("ours", "agents");
    trace.happened({ type: "tool_call", id: "agents", name: "look_up" });
    trace.happened({ type: "tool_result", id: "agents", output: "" });
    trace.ended(result);
    const calls = spans.filter(({ name }) => name.startsWith("execute_tool"));
    expect(calls.map(({ name }) => name)).toEqual(["execute_tool look_up"]);
    expect(sent).toContain(calls[0]?.spanId);
  });

  it("ends with the turn where the run pauses for the answer, and so does the wait", () => {
    const { trace, named } = traced();
    trace.happened({ type: "tool_call", id: "ask_1", name: "send" });
    trace.happened(request("ask_1"));
    trace.entered("closing");
    trace.ended({ ...result, stopReason: "paused" });
    for (const name of ["execute_tool send", "wait_for_user user_approval"])
      expect(named(name)).toMatchObject([{ attributes: { "ambit.interrupted": true } }]);
  });

  it("has an event for an answer that was given before the run began", () => {
    const { trace, named } = traced();
    trace.happened({ type: "tool_call", id: "call-1", name: "send" });
    trace.happened(response("call-1", false));
    trace.happened({ type: "tool_result", id: "call-1", output: "", isError: true, denied: true });
    trace.ended(result);
    expect(named("execute_tool send")[0]).toMatchObject({
      events: [{ name: "ambit.interaction.answer", attributes: { "ambit.interaction.approved": false } }],
      attributes: { "error.type": "permission_denied" },
    });
  });

  it("doesn't begin for questions without number", () => {
    const { trace, spans } = traced();
    for (let id = 0; id < 2_000; id += 1) trace.happened(request(`ask_${id}`));
    trace.ended(result);
    expect(spans.filter(({ name }) => name.startsWith("wait_for_user"))).toHaveLength(256);
  });
});
