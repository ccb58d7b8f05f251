import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type AgentSubscriber, HttpAgent, type Message, type RunAgentParameters } from "@ag-ui/client";
import { execa } from "execa";
import { beforeAll, describe, expect, it } from "vitest";
import { repository, type Server, startServer } from "../support/ambit.js";
import { chatDoors } from "../support/configurations.js";

/** Of two projects. */
const [token, foreignToken] = [randomUUID(), randomUUID()];
let server: Server;

beforeAll(async () => {
  const operator = randomUUID();
  server = await startServer({ AMBIT_TOKEN: operator, DOOR_TOKENS: `${token},${foreignToken}` }, chatDoors);
  return () => void server.process.kill("SIGKILL");
});

/** The official client of one thread. */
class Thread extends HttpAgent {
  readonly events: string[] = [];

  constructor(threadId: string = randomUUID(), as = token) {
    super({ url: `${server.url}/ag-ui/run`, threadId, headers: { authorization: `Bearer ${as}` } });
  }

  /** Sends a message whose lines the demo agent follows, or only what `parameters` have. */
  async send(
    lines: readonly string[],
    parameters: RunAgentParameters = {},
    subscriber: AgentSubscriber = {},
  ) {
    if (lines.length > 0) this.addMessage({ id: randomUUID(), role: "user", content: lines.join("\n") });
    let outcome: unknown;
    const failed: string[] = [];
    await this.runAgent(parameters, {
      ...subscriber,
      onEvent: ({ event }) => void this.events.push(event.type),
      onRunFinishedEvent: ({ event }) => {
        outcome = event.outcome;
      },
      onRunErrorEvent: ({ event }) => void failed.push(`${event.code}: ${event.message}`),
    });
    return { outcome, failed };
  }

  /** Each message after the user's last, in a line. */
  get said(): string[] {
    const last = this.messages.findLastIndex(({ role }) => role === "user");
    return this.messages.slice(last + 1).map(lineOf);
  }
}

function lineOf(message: Message): string {
  if (message.role === "assistant") {
    const calls = (message.toolCalls ?? []).map(
      ({ function: { name, arguments: input } }) => `${name} ${input}`,
    );
    return [`assistant: ${message.content ?? ""}`, ...calls].join(" | ");
  }
  return `${message.role}: ${typeof message.content === "string" ? message.content : JSON.stringify(message.content)}`;
}

const stop = (threadId: string, as = token) =>
  server.post(`/ag-ui/threads/${threadId}/stop`, {}, { authorization: `Bearer ${as}` });

/** The ids of the interrupts of an outcome. */
function interruptsOf(outcome: unknown): string[] {
  const { interrupts = [] } = Object(outcome);
  return interrupts.map(({ id }: { id: string }) => id);
}

describe("a thread of AG-UI", () => {
  it("gets thoughts, texts, calls, a policy's denial and the plan as its state", async () => {
    const thread = new Thread();
    const { outcome } = await thread.send([
      "think hm",
      "say hi",
      'call add {"a":1,"b":2}',
      "call wipe",
      "plan",
      "say done",
    ]);
    expect(outcome).toEqual({ type: "success" });
    expect(thread.said).toEqual([
      "reasoning: hm",
      "assistant: hi",
      'assistant:  | add {"a":1,"b":2}',
      'tool: {"sum":3}',
      "assistant:  | wipe {}",
      "tool: Tool 'wipe' is denied by policy.",
      expect.stringMatching(/^assistant: \s*done$/),
    ]);
    expect(thread.state).toHaveProperty("plan");
  });

  it("shows a file of the workspace by a URL that an image opens by itself", async () => {
    const thread = new Thread();
    const ambit = { outputs: { include: ["*.png"] } };
    const files: { readonly url: string; readonly mediaType: string }[] = [];
    const onCustomEvent: AgentSubscriber["onCustomEvent"] = ({ event: { name, value } }) =>
      void (name === "file" && files.push(value));
    await thread.send(["run printf ours > dot.png"], { forwardedProps: { ambit } }, { onCustomEvent });
    expect(files).toMatchObject([{ mediaType: "image/png" }]);
    const url = new URL(files[0]?.url ?? "", server.url);
    expect(await (await fetch(url)).text()).toBe("ours");
    expect((await fetch(`${url.origin}${url.pathname}`)).status).toBe(401);
  });

  it.each([
    [{ approved: true }, 'tool: {"booked":"1A"}'],
    [{ approved: false }, "tool: The user did not approve tool 'book'."],
  ])("goes on once its user has answered %o to an interrupt", async (payload, result) => {
    const thread = new Thread();
    const { outcome } = await thread.send(["say before", 'call book {"seat":"1A"}', "say after"]);
    expect(outcome).toMatchObject({
      type: "interrupt",
      interrupts: [{ reason: "tool_call", metadata: { toolName: "book", input: { seat: "1A" } } }],
    });
    const [interruptId = ""] = interruptsOf(outcome);
    const resume = [{ interruptId, status: "resolved" as const, payload }];
    expect((await thread.send([], { resume })).outcome).toEqual({ type: "success" });
    expect(thread.said).toEqual([
      "assistant: before",
      'assistant:  | book {"seat":"1A"}',
      result,
      expect.stringMatching(/^assistant: \s*after$/),
    ]);
  });

  it("executes the application's own tool, and shows its result once", async () => {
    const thread = new Thread();
    const tools = [{ name: "choose_seat", description: "Asks.", parameters: { type: "object" } }];
    const { outcome } = await thread.send(['call choose_seat {"train":"9:32"}', "say after"], { tools });
    const [toolCallId = ""] = Object(outcome).pendingToolCallIds;
    thread.addMessage({ id: randomUUID(), role: "tool", toolCallId, content: '{"seat":"12A"}' });
    expect((await thread.send([], { tools })).outcome).toEqual({ type: "success" });
    expect(thread.said).toEqual([
      'assistant:  | choose_seat {"train":"9:32"}',
      'tool: {"seat":"12A"}',
      expect.stringMatching(/^assistant: \s*after$/),
    ]);
  });

  it("is stopped, and goes on with the next message", async () => {
    const thread = new Thread();
    const reached = Promise.withResolvers<void>();
    const sending = thread.send(
      ["say one", "hang"],
      {},
      { onTextMessageContentEvent: () => reached.resolve() },
    );
    await reached.promise;
    expect(await (await stop(thread.threadId)).json()).toEqual({ stopped: true });
    expect((await sending).outcome).toEqual({ type: "cancelled" });
    expect((await thread.send(["say two"])).outcome).toEqual({ type: "success" });
    expect(thread.said).toEqual(["assistant: two"]);
  });

  it("is followed by another reader in mid-stream, from its run's start", async () => {
    const thread = new Thread();
    const reached = Promise.withResolvers<void>();
    const sending = thread.send(
      ["say one", "hang"],
      {},
      { onTextMessageContentEvent: () => reached.resolve() },
    );
    await reached.promise;
    const authorization = `Bearer ${token}`;
    const url = `${server.url}/ag-ui/threads/${thread.threadId}/stream`;
    const response = await fetch(url, { headers: { authorization } });
    await stop(thread.threadId);
    await sending;
    const events = (await response.text())
      .split("\n\n")
      .filter((frame) => frame.startsWith("data: "))
      .map((frame) => JSON.parse(frame.slice("data: ".length)).type);
    expect(events).toEqual(thread.events);
    expect((await fetch(url, { headers: { authorization } })).status).toBe(204);
  });

  it("says in words for its user why a run failed, or was refused", async () => {
    const thread = new Thread();
    expect((await thread.send(["say almost", "fail secret-host is down"])).failed).toEqual([
      expect.stringMatching(/^harness_failed: The agent failed\. Try again\. \(Run /),
    ]);
    const network = { sandboxPermission: { network: "on", enforcement: "strict", nonsense: 1 } };
    const { failed } = await new Thread().send(["say x"], { forwardedProps: { ambit: network } });
    expect(failed).toEqual([expect.stringContaining("request_invalid: ")]);
  });

  it("serves a page within its token's session and request, and no further", async () => {
    const threadId = randomUUID();
    const authorization = `Bearer ${token}`;
    const may = ["read", "run", "answer"];
    const request = { harness: "demo" };
    const tokenAnswer = await server.post(
      "/tokens",
      { sessionId: threadId, may, request },
      { authorization },
    );
    const { token: page } = Object(await tokenAnswer.json());
    const thread = new Thread(threadId, page);
    expect((await thread.send(["say hi"])).outcome).toEqual({ type: "success" });
    expect(thread.said).toEqual(["assistant: hi"]);
    expect((await new Thread(randomUUID(), page).send(["say hi"])).failed).toEqual([
      expect.stringMatching(/^request_invalid: .*session of this page's token/),
    ]);
    expect((await stop(randomUUID(), page)).status).toBe(403);
    // Control: a platform's own token reaches any thread of its project.
    expect((await new Thread().send(["say hi"], { forwardedProps: { ambit: request } })).outcome).toEqual({
      type: "success",
    });
  });

  it("takes no answer of another thread, or of another tenant's", async () => {
    const thread = new Thread();
    const { outcome } = await thread.send(['call book {"seat":"1A"}']);
    const [interruptId = ""] = interruptsOf(outcome);
    const resume = [{ interruptId, status: "resolved" as const, payload: { approved: true } }];
    // The same id in another thread, and in the same thread of another tenant: neither is a question there.
    for (const forged of [new Thread(), new Thread(thread.threadId, foreignToken)])
      await expect(forged.send([], { resume })).rejects.toThrow(/which isn't open/);
    expect(await (await stop(thread.threadId, foreignToken)).json()).toEqual({ stopped: false });
    // Control: its own user's answer counts, once.
    expect((await thread.send([], { resume })).outcome).toEqual({ type: "success" });
    await expect(thread.send([], { resume })).rejects.toThrow(/isn't open/);
  });
});

describe("the program of docs/doors/ag-ui.md", () => {
  it("is on the page, and asks its user in a terminal", async () => {
    const file = "examples/door-ag-ui/main.ts";
    const program = await readFile(join(repository, file), "utf8");
    expect(await readFile(join(repository, "docs/doors/ag-ui.md"), "utf8")).toContain(program);
    expect(program.split("\n").length).toBeLessThanOrEqual(41);
    const { stdout } = await execa(
      process.execPath,
      [file, "say one", 'call book {"seat":"1A"}', "say two"],
      {
        cwd: repository,
        env: { AMBIT_URL: server.url, AMBIT_TOKEN: token },
        // A pipe that has ended before the question comes.
        input: "yes\n",
      },
    );
    expect(stdout).toMatch(/one[\s\S]*\{"booked":"1A"\}[\s\S]*two/);
  });
});
