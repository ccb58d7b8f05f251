// What a user of the SDK does, against its own service and a real runner.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { approve } from "./approve.mjs";
import { say } from "./service.mjs";
import {
  agentWith,
  ask,
  gatewayConnection,
  gatewayTool,
  of,
  pick,
  textOf,
  uiMessage,
  uiUser,
  until,
  user,
} from "./turns.mjs";

/**
 * @typedef {object} World
 * @property {string} service
 * @property {string} runner
 * @property {string} token of the runner
 * @property {import("./platform.mjs").Platform} platform
 * @property {{ tool: string, input: object }} wanted the call that the model makes when it is asked to repeat the last one
 * @property {boolean} isNewest whether the SDK is one after 0.113
 * @property {() => Promise<{ name: string, url: string }>} lenient a server whose operator lets an agent that never asks
 *   run with its boundary alone
 */

/** @type {Record<string, (world: World) => Promise<void>>} */
export const cases = {
  async "a chat in a session, as events"({ service }) {
    const session = `chat-${randomUUID()}`;
    const first = await say(service, { agent: agentWith(), session, messages: [user("[[say Hello Ada.]]")] });
    assert.equal(first.status, 200);
    assert.match(textOf(first), /Hello Ada\./);
    assert.equal(of(first, "turn").length, 1);
    const messages = [
      user("[[say Hello Ada.]]"),
      { role: "assistant", content: "Hello Ada." },
      user("[[say Again.]]"),
    ];
    assert.match(textOf(await say(service, { agent: agentWith(), session, messages })), /Again\./);
  },

  async "a chat as one answer, with its usage"({ service }) {
    const turn = await say(service, { agent: agentWith(), messages: [user("[[say Once.]]")], form: "json" });
    assert.equal(turn.status, 200, JSON.stringify(turn.body));
    assert.match(JSON.stringify(turn.body.data.outputs.messages), /Once\./);
  },

  async "a chat as a UI message stream"({ service }) {
    const turn = await say(service, {
      agent: agentWith(),
      messages: [uiUser("[[say For the browser.]]")],
      form: "vercel",
    });
    assert.match(textOf(turn), /For the browser\./);
    assert.deepEqual(
      [of(turn, "start").length, of(turn, "finish").length, of(turn, "error").length],
      [1, 1, 0],
    );
  },

  async "a gateway's tool that may run, with its connection"({ service, platform, isNewest }) {
    const before = platform.calls.length;
    const { tools, prompt } = isNewest
      ? {
          tools: [gatewayConnection],
          prompt: '[[call run_tool {"integration":"github","tool":"LIST_ISSUES","arguments":{}}]]',
        }
      : { tools: [gatewayTool("LIST_ISSUES", "allow")], prompt: "[[call list_issues {}]]" };
    const turn = await say(service, { agent: agentWith({ tools }), messages: [user(prompt)] });
    assert.equal(platform.calls.length, before + 1, JSON.stringify(turn.parts).slice(0, 2_000));
    if (!isNewest) return;
    assert.deepEqual(platform.calls.at(-1)?.context, {
      provider: "composio",
      integration: "github",
      connection: "github-main",
      tool: "LIST_ISSUES",
      toolkit_version: "20260901_00",
    });
  },

  async "a gateway's tool that is denied, which never reaches the platform"({ service, platform, isNewest }) {
    const before = platform.calls.length;
    const { tools, prompt } = isNewest
      ? {
          tools: [gatewayConnection],
          prompt: '[[call run_tool {"integration":"github","tool":"DELETE_REPO","arguments":{}}]]',
        }
      : { tools: [gatewayTool("DELETE_REPO", "deny")], prompt: "[[call delete_repo {}]]" };
    const turn = await say(service, { agent: agentWith({ tools }), messages: [user(prompt)] });
    assert.equal(platform.calls.length, before);
    assert(of(turn, "tool_result").some(({ data }) => data.denied === true || data.isError === true));
  },

  async "a search for tools, which names no denied one"({ service, isNewest }) {
    if (!isNewest) return;
    const prompt = '[[call search_tools {"query":"issues"}]]';
    const turn = await say(service, {
      agent: agentWith({ tools: [gatewayConnection] }),
      messages: [user(prompt)],
    });
    const found = JSON.stringify(of(turn, "tool_result"));
    assert.match(found, /LIST_ISSUES/);
    assert.doesNotMatch(found, /DELETE_REPO/);
  },

  async "an approval, in the browser's form"(world) {
    await approve(world, true);
  },

  async "an approval that is refused"(world) {
    await approve(world, false);
  },

  async "a client tool, in the browser's form"({ service, wanted }) {
    Object.assign(wanted, { tool: "pick", input: { to: "ann" } });
    const agent = agentWith({ tools: [pick] });
    const session = `client-${randomUUID()}`;
    const asked = uiUser('[[call pick {"to":"ann"}]]');
    const paused = await say(service, { agent, session, messages: [asked], form: "vercel" });
    const call = of(paused, "tool-input-available").at(-1);
    assert(call, JSON.stringify(paused.parts).slice(0, 2_000));
    const answered = uiMessage(paused, call.toolCallId, {
      state: "output-available",
      output: { seat: "12A" },
    });
    const resumed = await say(service, { agent, session, messages: [asked, answered], form: "vercel" });
    assert.match(JSON.stringify(resumed.parts), /12A/);
    assert.equal(of(resumed, "error").length, 0);
  },

  async "a refusal, with its reason in the stream"({ service }) {
    const agent = agentWith({
      harness: { kind: "codex" },
      llm: { model: "gpt-5.5", provider: "openai", connection: { mode: "agenta", slug: "scripted" } },
    });
    const turn = await say(service, { agent, messages: [uiUser("hi")], form: "vercel" });
    const error = JSON.stringify(turn.parts) + JSON.stringify(turn.body ?? {});
    assert.match(error, /doesn't ask before it uses its own tools|isn't installed|codex/i);
  },

  async "a session that is in use"({ service, isNewest }) {
    const session = `busy-${randomUUID()}`;
    const agent = agentWith();
    const leaving = new AbortController();
    const begun = Promise.withResolvers();
    const first = say(service, {
      agent,
      session,
      messages: [user("[[slow 300 100]]")],
      signal: leaving.signal,
      flags: { detached: false },
      onPart: ({ type }) => type === "message_delta" && begun.resolve(undefined),
    }).catch(() => undefined);
    await begun.promise;
    const second = await say(service, { agent, session, messages: [user("[[say no]]")], form: "json" });
    if (isNewest) assert.equal(second.status, 409, JSON.stringify(second.body));
    else assert.match(JSON.stringify(second.body), /busy with another run/);
    leaving.abort();
    await first;
    // Before 0.116 a session's run went on without its reader; now its caller owns it.
    if (!isNewest) return;
    await until(
      async () =>
        (await say(service, { agent, session, messages: [user("[[say free]]")], form: "json" })).status ===
        200,
    );
  },

  async "a detached run, which goes on without its reader"({ service, runner, token, isNewest }) {
    if (!isNewest) return;
    const session = `detached-${randomUUID()}`;
    const agent = agentWith();
    const leaving = new AbortController();
    const begun = Promise.withResolvers();
    let runId = "";
    const reading = say(service, {
      agent,
      session,
      messages: [user("[[slow 30 100]] [[say Done.]]")],
      signal: leaving.signal,
      flags: { detached: true },
      meta: { run_id: "turn-1", project_id: "project-1" },
      onPart: ({ type, data }) => {
        if (type === "data" && data.name === "run") runId = data.data.runId;
        if (type === "turn") assert.equal(data.turnId, "turn-1");
        if (type === "message_delta") begun.resolve(undefined);
      },
    }).catch(() => undefined);
    await begun.promise;
    leaving.abort();
    await reading;
    const run = async () =>
      (await fetch(`${runner}/runs/${runId}`, { headers: { authorization: `Bearer ${token}` } })).json();
    await until(async () => /** @type {any} */ (await run()).state === "ended");
    assert.equal(/** @type {any} */ (await run()).result.stopReason, "end_turn");
  },

  async "a kill of a running turn"(world) {
    const session = `kill-${randomUUID()}`;
    const begun = Promise.withResolvers();
    const running = say(world.service, {
      agent: agentWith(),
      session,
      messages: [user("[[slow 300 100]]")],
      onPart: ({ type }) => type === "message_delta" && begun.resolve(undefined),
    });
    await begun.promise;
    const killed = /** @type {any} */ (await (await ask(world, "/kill", { sessionId: session })).json());
    assert.equal(killed.ended, true);
    const turn = await running;
    assert.equal(of(turn, "done").at(-1)?.data.stopReason, "cancelled", JSON.stringify(turn.parts.slice(-2)));
  },

  async "a command that is delivered twice, and executed once"({ service, platform, isNewest }) {
    if (!isNewest) return;
    const before = platform.calls.length;
    const prompt =
      '[[call run_tool {"integration":"github","tool":"LIST_ISSUES","arguments":{"twice":true}}]]';
    const deliver = () =>
      say(service, {
        agent: agentWith({ tools: [gatewayConnection] }),
        session: "command-session",
        messages: [user(prompt)],
        form: "json",
        flags: { detached: true },
        meta: { run_id: randomUUID(), project_id: "project-1", control_command_id: "command-1" },
      });
    const [first, second] = await Promise.all([deliver(), deliver()]);
    const third = await deliver();
    for (const { status, body } of [first, second, third]) assert.equal(status, 200, JSON.stringify(body));
    assert.equal(platform.calls.length, before + 1);
  },

  async "a model behind the platform's gateway, whose credential stays outside"({
    service,
    platform,
    isNewest,
  }) {
    if (!isNewest) return;
    platform.hasGateway = true;
    try {
      const prompt = "[[say Routed.]] [[shell env]]";
      const agent = agentWith({ runner: { permissions: { default: "allow" } } });
      const turn = await say(service, { agent, messages: [user(prompt)] });
      assert.match(textOf(turn), /Routed\./);
      assert.doesNotMatch(JSON.stringify(turn.parts), /gateway-credential-1/);
      assert(platform.gatewayCredentials.length > 0);
      for (const credential of platform.gatewayCredentials)
        assert.equal(credential, "Secret gateway-credential-1");
    } finally {
      platform.hasGateway = false;
    }
  },

  async "Codex, which never asks, where the operator lets the boundary stand for its tools"({
    service,
    platform,
    lenient,
    isNewest,
  }) {
    // The SDK is led there as to the pod that had the session last.
    if (!isNewest) return;
    const { name, url } = await lenient();
    platform.pod = { address: url, replica: name };
    const before = platform.calls.length;
    try {
      const agent = agentWith({ harness: { kind: "codex" }, tools: [gatewayConnection] });
      const listing = '[[call run_tool {"integration":"github","tool":"LIST_ISSUES","arguments":{}}]]';
      const patch = "apply_patch <<'EOP'\n*** Begin Patch\n*** Add File: made.txt\n+one\n*** End Patch\nEOP";
      const messages = [user(`[[shell ${patch}]] ${listing} [[say Codex is done.]]`)];
      const turn = await say(service, { agent, session: `codex-${randomUUID()}`, messages });
      const seen = JSON.stringify(turn.parts).slice(0, 4_000);
      assert.match(textOf(turn), /Codex is done\./, seen);
      assert.equal(platform.calls.length, before + 1, seen);
      // Its reader takes no harm from a field that it doesn't know.
      const changes = of(turn, "tool_result").flatMap(({ data }) => data.changes ?? []);
      assert.deepEqual(
        changes.map(({ newText }) => newText),
        ["one\n"],
        seen,
      );
    } finally {
      platform.pod = undefined;
    }
  },

  async "its traces arrive at the platform"({ platform }) {
    await until(async () => platform.traces > 0);
  },
};
