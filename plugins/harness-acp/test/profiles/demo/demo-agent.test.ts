import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { HarnessFailed, RunCancelled } from "@ambit/core/plugin";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AcpHarness } from "../../../src/index.js";
import { demo } from "../../../src/profiles/demo.js";
import { ProcessSandbox } from "../../support/process-sandbox.js";
import { eventsOf, failureOf, TestScope, textOf, turnOf } from "../../support/runs.js";

const limits = { cancelMs: 500, closeMs: 2_000, messageCharacters: 1_000_000, bufferedCharacters: 8_192 };
const harness = new AcpHarness(demo, { limits, folder: import.meta.dirname, env: { FROM_DEPLOYER: "yes" } });

let sandbox: ProcessSandbox;
beforeEach(async () => {
  sandbox = await ProcessSandbox.open();
});
afterEach(() => sandbox.close());

async function started(options: ConstructorParameters<typeof TestScope>[1] = {}) {
  const scope = new TestScope(sandbox, options);
  const agent = await harness.start(scope);
  return { scope, agent };
}

describe("the demo agent, as a process", () => {
  it("says, thinks and ends its turn: blocks, usage, then done", async () => {
    const { agent, scope } = await started();
    const events = await eventsOf(agent, turnOf({ prompt: "say one\nthink two\nsay three" }));
    expect(events).toEqual([
      { type: "message_start", id: "message-1" },
      { type: "message_delta", id: "message-1", delta: "one" },
      { type: "message_end", id: "message-1" },
      { type: "thought_start", id: "thought-2" },
      { type: "thought_delta", id: "thought-2", delta: "two" },
      { type: "thought_end", id: "thought-2" },
      { type: "message_start", id: "message-3" },
      { type: "message_delta", id: "message-3", delta: expect.stringContaining("three") },
      { type: "message_end", id: "message-3" },
      { type: "usage", input: 6, output: 2, total: 8 },
      { type: "done", stopReason: "end_turn" },
    ]);
    expect(agent.history).toBe("new");
    expect(agent.capabilities).toMatchObject({ images: true, mcpTools: true, sessionLifecycle: true });
    await scope.close();
    expect(await sandbox.spawned[0]?.exit).toMatchObject({ signal: "SIGKILL" });
  });

  it("exits by itself if its profile says that it stores late", async () => {
    const quirks = { ...demo.quirks, savesBeforeAnswering: false };
    const patient = new AcpHarness({ ...demo, quirks }, { limits, folder: import.meta.dirname, env: {} });
    const endOf = async (request: object) => {
      const scope = new TestScope(sandbox, { request });
      await patient.start(scope);
      await scope.close();
      return await sandbox.spawned.at(-1)?.exit;
    };
    expect(await endOf({ sessionId: "s" })).toMatchObject({ code: 0 });
    // A conversation that can't be resumed needn't be stored.
    expect(await endOf({})).toMatchObject({ signal: "SIGKILL" });
  });

  it("gets a complete environment with nothing of the runner's", async () => {
    process.env.AMBIT_TEST_CANARY = "canary";
    const { agent, scope } = await started({
      request: {
        modelConnection: {
          environment: { PLAIN: "1" },
          credentials: [{ binding: { kind: "environment", name: "KEY" }, value: "v" }],
        },
      },
    });
    const text = textOf(await eventsOf(agent, turnOf({ prompt: "env" })));
    expect(JSON.parse(text)).toEqual({
      PATH: expect.stringContaining("/usr/bin"),
      HOME: sandbox.home,
      LANG: "C.UTF-8",
      TERM: "dumb",
      NO_COLOR: "1",
      FROM_DEPLOYER: "yes",
      PLAIN: "1",
      KEY: "v",
    });
    await scope.close();
    delete process.env.AMBIT_TEST_CANARY;
  });

  it("kills an agent that can't be stopped, and fails the next prompt with that reason", async () => {
    const { agent, scope } = await started();
    const abort = new AbortController();
    const turn = turnOf({ prompt: "say ready\ndeaf", signal: abort.signal });
    const events = [];
    for await (const event of agent.prompt(turn)) {
      events.push(event);
      if (event.type === "message_delta") abort.abort(new RunCancelled("cancelled"));
    }
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "cancelled" });
    expect(await sandbox.spawned[0]?.exit).toMatchObject({ signal: "SIGKILL" });
    const { error } = await failureOf(agent, turnOf());
    expect(error).toBeInstanceOf(HarnessFailed);
    await scope.close();
  });

  it("fails clearly: a failed turn, with open calls settled", async () => {
    const { agent, scope } = await started();
    const { events, error } = await failureOf(agent, turnOf({ prompt: "say a\nfail the reason" }));
    expect(error).toBeInstanceOf(HarnessFailed);
    expect(error).toMatchObject({ message: expect.stringContaining("the reason") });
    expect(events.at(-1)?.type).toBe("message_end");
    await scope.close();
  });

  it("fails clearly: a crash during a turn, with its exit code, and its last output only in the log", async () => {
    const { agent, scope } = await started();
    const { error } = await failureOf(agent, turnOf({ prompt: "say a\ncrash sk-secret-words" }));
    expect(error).toBeInstanceOf(HarnessFailed);
    expect(error).toMatchObject({ message: expect.stringContaining("exit code 1") });
    expect(String(error)).not.toContain("sk-secret-words");
    expect(JSON.stringify(scope.logged)).toContain("sk-secret-words");
    await scope.close();
  });

  it("ignores noise on stdout", async () => {
    const { agent, scope } = await started();
    expect(textOf(await eventsOf(agent, turnOf({ prompt: "noise\nsay heard" })))).toBe("heard");
    await scope.close();
  });

  it("fails on a message over the limit", async () => {
    const { agent, scope } = await started();
    const { error } = await failureOf(agent, turnOf({ prompt: "big 2000000" }));
    expect(error).toMatchObject({ message: expect.stringContaining("1000000 characters") });
    await scope.close();
  });

  it("stops reading while the events aren't consumed", async () => {
    const { agent, scope } = await started();
    const turn = agent.prompt(turnOf({ prompt: `stream 20000 ${"x".repeat(100)}` }));
    const iterator = turn[Symbol.asyncIterator]();
    await iterator.next();
    const held = await sandbox.settledOutput();
    // 64 KiB for the pipe's reader and for each of the two streams in between, plus the limit of the queue.
    expect(held).toBeLessThan(300_000);
    let deltas = 0;
    for (let step = await iterator.next(); step.done !== true; step = await iterator.next()) {
      if (step.value.type === "message_delta") deltas += 1;
    }
    expect(deltas).toBe(20_000);
    // The control: the whole output is ten times as much.
    expect(await sandbox.settledOutput()).toBeGreaterThan(3_000_000);
    await scope.close();
  });

  it("is notified when the consumer stops reading", async () => {
    const { agent, scope } = await started();
    for await (const event of agent.prompt(turnOf({ prompt: "say a\nhang" }))) {
      if (event.type === "message_delta") break;
    }
    expect(textOf(await eventsOf(agent, turnOf({ prompt: "say again" })))).toBe("again");
    await scope.close();
  });

  it("resumes an earlier conversation in a new process, without replaying it as events", async () => {
    const first = await started();
    await eventsOf(first.agent, turnOf({ prompt: "say remembered" }));
    await first.scope.close();
    const second = await started({ resume: first.agent.conversation });
    expect(second.agent.history).toBe("loaded");
    expect(second.agent.conversation).toBe(first.agent.conversation);
    expect(textOf(await eventsOf(second.agent, turnOf({ prompt: "recall" })))).toContain("remembered");
    await second.scope.close();
  });

  it("begins a new conversation when the earlier one is lost", async () => {
    const { agent, scope } = await started({ resume: "no-such-conversation" });
    expect(agent.history).toBe("new");
    expect(textOf(await eventsOf(agent, turnOf({ prompt: "say hello" })))).toBe("hello");
    await scope.close();
  });

  it("writes agentsMd into the workspace", async () => {
    const { scope } = await started({ request: { agentsMd: "Be brief." } });
    expect(await readFile(join(sandbox.workspace, "AGENTS.md"), "utf8")).toBe("Be brief.");
    await scope.close();
  });

  it("stops a start with the scope's own reason, and leaves no process", async () => {
    const scope = new TestScope(sandbox);
    const starting = harness.start(scope);
    scope.stop(new RunCancelled("The client went away."));
    await expect(starting).rejects.toThrow("The client went away.");
    await Promise.all(sandbox.spawned.map((process) => process.exit));
    await scope.close();
  });

  it("can be closed twice, and refuses prompts afterwards", async () => {
    const { agent, scope } = await started();
    await Promise.all([agent.close(), agent.close()]);
    expect(() => agent.prompt(turnOf())[Symbol.asyncIterator]()).toThrow("closed");
    await scope.close();
  });
});
