// An approval in the form of a user interface: asked in one turn, answered in the next.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { say } from "./service.mjs";
import { agentWith, gatewayConnection, gatewayTool, of, uiMessage, uiUser } from "./turns.mjs";

/** @param {import("./cases.mjs").World} world @param {boolean} approved */
export async function approve({ service, platform, wanted, isNewest }, approved) {
  const tools = isNewest ? [gatewayConnection] : [gatewayTool("CREATE_ISSUE", "ask")];
  const given = { title: "x" };
  const tool = isNewest ? "run_tool" : "create_issue";
  const input = isNewest ? { integration: "github", tool: "CREATE_ISSUE", arguments: given } : given;
  Object.assign(wanted, { tool, input });
  const prompt = `[[call ${tool} ${JSON.stringify(input)}]]`;
  const agent = agentWith({ tools });
  const session = `approval-${randomUUID()}`;
  const before = platform.calls.length;
  const asked = uiUser(prompt);
  const paused = await say(service, { agent, session, messages: [asked], form: "vercel" });
  const request = of(paused, "tool-approval-request").at(-1);
  assert(request, JSON.stringify(paused.parts).slice(0, 2_000));
  assert.equal(platform.calls.length, before);
  const changes = { state: "approval-responded", approval: { id: request.approvalId, approved } };
  const answered = uiMessage(paused, request.toolCallId, changes);
  const resumed = await say(service, { agent, session, messages: [asked, answered], form: "vercel" });
  assert.equal(of(resumed, "error").length, 0, JSON.stringify(resumed.parts).slice(0, 2_000));
  assert.equal(platform.calls.length, before + (approved ? 1 : 0));
  const results = ["tool-output-available", "tool-output-denied", "tool-output-error"].map(
    (type) => of(resumed, type).length,
  );
  // One call in each turn: the one that was asked about, and the one that is decided.
  const begun = [paused, resumed].map((turn) => of(turn, "tool-input-start"));
  const seen = JSON.stringify([paused.parts, resumed.parts]).slice(0, 4_000);
  assert.deepEqual(
    begun.map(({ length }) => length),
    [1, 1],
    seen,
  );
  const ended = resumed.parts.filter(({ type }) => String(type).startsWith("tool-output-"));
  assert.deepEqual(
    ended.map(({ toolCallId }) => toolCallId),
    begun[1]?.map(({ toolCallId }) => toolCallId),
    seen,
  );
  assert.equal(results[0], approved ? 1 : 0, JSON.stringify(resumed.parts).slice(0, 2_000));
  assert.equal(
    (results[1] ?? 0) + (results[2] ?? 0),
    approved ? 0 : 1,
    JSON.stringify(resumed.parts).slice(0, 2_000),
  );
}
