import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { HarnessFailed, RunCancelled } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { demo } from "../../../src/profiles/demo.js";
import { DemoStage, demoHarness } from "../../support/demo-stage.js";
import { eventsOf, failureOf, TestScope, textOf, turnOf } from "../../support/runs.js";

const stage = new DemoStage();

describe("the demo agent, as a process", () => {
  it("says, thinks and ends its turn: blocks, usage, then done", async () => {
    const { agent, scope } = await stage.start();
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
    expect(await stage.sandbox.spawned[0]?.exit).toMatchObject({ signal: "SIGKILL" });
  });

  it("exits by itself if its profile says that it stores late", async () => {
    const quirks = { ...demo.quirks, savesBeforeAnswering: false };
    const patient = demoHarness({ ...demo, quirks });
    const endOf = async (request: object) => {
      const scope = new TestScope(stage.sandbox, { request });
      await patient.start(scope);
      await scope.close();
      return await stage.sandbox.spawned.at(-1)?.exit;
    };
    expect(await endOf({ sessionId: "s" })).toMatchObject({ code: 0 });
    // A conversation that can't be resumed needn't be stored.
    expect(await endOf({})).toMatchObject({ signal: "SIGKILL" });
  });

  it("gets a complete environment with nothing of the runner's", async () => {
    process.env.AMBIT_TEST_CANARY = "canary";
    const { agent, scope } = await stage.start({
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
      HOME: stage.sandbox.home,
      LANG: "C.UTF-8",
      TERM: "dumb",
      NO_COLOR: "1",
      PAGER: "cat",
      GIT_PAGER: "cat",
      GIT_TERMINAL_PROMPT: "0",
      FROM_DEPLOYER: "yes",
      PLAIN: "1",
      KEY: "v",
    });
    await scope.close();
    delete process.env.AMBIT_TEST_CANARY;
  });

  it("kills an agent that can't be stopped, and fails the next prompt with that reason", async () => {
    const { agent, scope } = await stage.start();
    const abort = new AbortController();
    const turn = turnOf({ prompt: "say ready\ndeaf", signal: abort.signal });
    const events = [];
    for await (const event of agent.prompt(turn)) {
      events.push(event);
      if (event.type === "message_delta") abort.abort(new RunCancelled("cancelled"));
    }
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "cancelled" });
    expect(await stage.sandbox.spawned[0]?.exit).toMatchObject({ signal: "SIGKILL" });
    const { error } = await failureOf(agent, turnOf());
    expect(error).toBeInstanceOf(HarnessFailed);
    await scope.close();
  });

  it("fails clearly: a failed turn, with open calls settled", async () => {
    const { agent, scope } = await stage.start();
    const { events, error } = await failureOf(agent, turnOf({ prompt: "say a\nfail the reason" }));
    expect(error).toBeInstanceOf(HarnessFailed);
    expect(error).toMatchObject({ message: expect.stringContaining("the reason") });
    expect(events.at(-1)?.type).toBe("message_end");
    await scope.close();
  });

  it("fails clearly: a crash during a turn, with its exit code, and its last output only in the log", async () => {
    const { agent, scope } = await stage.start();
    const { error } = await failureOf(agent, turnOf({ prompt: "say a\ncrash sk-secret-words" }));
    expect(error).toBeInstanceOf(HarnessFailed);
    expect(error).toMatchObject({ message: expect.stringContaining("exit code 1") });
    expect(String(error)).not.toContain("sk-secret-words");
    expect(JSON.stringify(scope.logged)).toContain("sk-secret-words");
    await scope.close();
  });

  it("ignores noise on stdout", async () => {
    const { agent, scope } = await stage.start();
    expect(textOf(await eventsOf(agent, turnOf({ prompt: "noise\nsay heard" })))).toBe("heard");
    await scope.close();
  });

  it("fails on a message over the limit", async () => {
    const { agent, scope } = await stage.start();
    const { error } = await failureOf(agent, turnOf({ prompt: "big 2000000" }));
    expect(error).toMatchObject({ message: expect.stringContaining("1,000,000 characters") });
    await scope.close();
  });

  it("stops reading while the events aren't consumed", async () => {
    const { agent, scope } = await stage.start();
    const turn = agent.prompt(turnOf({ prompt: `stream 20000 ${"x".repeat(100)}` }));
    const iterator = turn[Symbol.asyncIterator]();
    await iterator.next();
    const held = await stage.sandbox.settledOutput();
    // 64 KiB for the pipe's reader and for each of the two streams in between, plus the limit of the queue.
    expect(held).toBeLessThan(300_000);
    let deltas = 0;
    for (let step = await iterator.next(); step.done !== true; step = await iterator.next()) {
      if (step.value.type === "message_delta") deltas += 1;
    }
    expect(deltas).toBe(20_000);
    // The control: the whole output is ten times as much.
    expect(await stage.sandbox.settledOutput()).toBeGreaterThan(3_000_000);
    await scope.close();
  });

  it("is notified when the consumer stops reading", async () => {
    const { agent, scope } = await stage.start();
    for await (const event of agent.prompt(turnOf({ prompt: "say a\nhang" }))) {
      if (event.type === "message_delta") break;
    }
    expect(textOf(await eventsOf(agent, turnOf({ prompt: "say again" })))).toBe("again");
    await scope.close();
  });

  it("resumes an earlier conversation in a new process, without replaying it as events", async () => {
    const first = await stage.start();
    await eventsOf(first.agent, turnOf({ prompt: "say remembered" }));
    await first.scope.close();
    const second = await stage.start({ resume: first.agent.conversation });
    expect(second.agent.history).toBe("loaded");
    expect(second.agent.conversation).toBe(first.agent.conversation);
    expect(textOf(await eventsOf(second.agent, turnOf({ prompt: "recall" })))).toContain("remembered");
    await second.scope.close();
  });

  it("begins a new conversation when the earlier one is lost", async () => {
    const { agent, scope } = await stage.start({ resume: "no-such-conversation" });
    expect(agent.history).toBe("new");
    expect(textOf(await eventsOf(agent, turnOf({ prompt: "say hello" })))).toBe("hello");
    await scope.close();
  });

  it("writes agentsMd into the workspace", async () => {
    const { scope } = await stage.start({ request: { agentsMd: "Be brief." } });
    expect(await readFile(join(stage.sandbox.workspace, "AGENTS.md"), "utf8")).toBe("Be brief.");
    await scope.close();
  });

  it("stops a start with the scope's own reason, and leaves no process", async () => {
    const scope = new TestScope(stage.sandbox);
    const starting = demoHarness().start(scope);
    scope.stop(new RunCancelled("The client went away."));
    await expect(starting).rejects.toThrow("The client went away.");
    await Promise.all(stage.sandbox.spawned.map((process) => process.exit));
    await scope.close();
  });

  it("can be closed twice, and refuses prompts afterwards", async () => {
    const { agent, scope } = await stage.start();
    await Promise.all([agent.close(), agent.close()]);
    expect(() => agent.prompt(turnOf())[Symbol.asyncIterator]()).toThrow("closed");
    await scope.close();
  });
});
