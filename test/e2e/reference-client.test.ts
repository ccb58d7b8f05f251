import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { call, followMarkers, type ModelServer, startModelServer } from "@ambit/model-server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bodyOf, emptyFolder, type Server, serve, startServer } from "./support/ambit.js";
import { callbackServer } from "./support/callback-server.js";
import { questionSchema, ReferenceClient, type ReferenceTurn } from "./support/reference-client.js";

let server: Server;
let model: ModelServer;
/** The call that the model makes when it is asked to repeat the last one. */
let wanted = { tool: "mail", input: { to: "ann" } };

beforeAll(async () => {
  server = await startServer();
  model = await startModelServer({
    expectedKey: "test-key",
    script: (turn) => {
      const isAskedToContinue = turn.lastUserText.includes("Make the same tool call again");
      if (turn.tools.length > 0 && isAskedToContinue && turn.toolResults.length === 0)
        return call(wanted.tool, wanted.input);
      return followMarkers(turn);
    },
  });
});
afterAll(async () => {
  server.process.kill("SIGKILL");
  await model.close();
});

/** The shapes of its golden requests, less what names its own model and tools. */
async function requestFor(harness: "demo" | "pi") {
  const platform = await callbackServer((_name, given) => ({ sent: given }));
  const tool = { inputSchema: { type: "object", properties: { to: { type: "string" } } } };
  const credential = { binding: { kind: "environment", name: "OPENAI_API_KEY" }, value: "test-key" };
  const request = {
    harness,
    customTools: [
      { ...tool, name: "mail", description: "Sends mail", callRef: "ref__mail", permission: "ask" },
      { ...tool, name: "pick", description: "Lets the user pick", kind: "client" },
    ],
    toolCallback: { endpoint: platform.endpoint, authorization: "Access tok-123" },
    permissions: { default: "allow" },
    ...(harness === "demo"
      ? {}
      : {
          modelConnection: {
            provider: "openai",
            deployment: "direct",
            credentialMode: "env",
            endpoint: { baseUrl: `${model.url}/v1` },
            credentials: [{ ...credential, usage: "opaque_http" }],
          },
        }),
  };
  return { request, platform };
}

function expectWellFormed({ status, records, events, result }: ReferenceTurn): void {
  expect(status).toBe(200);
  expect(records.filter(({ kind }) => kind === "result")).toHaveLength(1);
  expect(result?.events).toEqual([]);
  expect(events.filter(({ type }) => type === "done")).toHaveLength(1);
  expect(events.at(-1)?.type).toBe("done");
  const announced = new Set<string>();
  for (const event of events) {
    if (event.type === "tool_call") announced.add(event.id);
    if (event.type === "tool_result") expect(announced).toContain(event.id);
    if (event.type !== "interaction_request") continue;
    expect(announced).toContain(questionSchema.parse(event.payload).toolCallId);
  }
}

describe.each([
  ["in a session", "s-1"],
  ["without one", null],
])("the reference's client, %s", (_what, id) => {
  const prompts = { mail: '[[call mail {"to":"ann"}]]', pick: '[[call pick {"to":"ann"}]]' };

  it("resumes an approval that it put into the assistant's message", { timeout: 90_000 }, async () => {
    wanted = { tool: "mail", input: { to: "ann" } };
    const { request, platform } = await requestFor("pi");
    const client = new ReferenceClient(server, request, { id, project: "p-1" });
    const paused = await client.say(prompts.mail);
    expectWellFormed(paused);
    expect(paused.result).toMatchObject({ ok: true, stopReason: "paused" });
    expect(platform.calls).toEqual([]);
    const resumed = await client.answer({ approved: true }, paused);
    expectWellFormed(resumed);
    expect(resumed.result).toMatchObject({ ok: true, stopReason: "end_turn" });
    expect(platform.calls).toMatchObject([{ name: "ref__mail", arguments: { to: "ann" } }]);
    expect(platform.calls[0]?.authorization).toBe("Access tok-123");
    // The same messages again allow nothing more.
    const again = await client.run();
    expect(again.result).toMatchObject({ stopReason: "paused" });
    expect(platform.calls).toHaveLength(1);
  });

  it("resumes a client tool with its output", { timeout: 90_000 }, async () => {
    wanted = { tool: "pick", input: { to: "ann" } };
    const { request } = await requestFor("pi");
    const client = new ReferenceClient(server, request, { id: id && "s-2", project: "p-1" });
    const paused = await client.say(prompts.pick);
    expect(paused.events).toContainEqual(expect.objectContaining({ kind: "client_tool" }));
    const resumed = await client.answer({ seat: "12A" }, paused);
    expectWellFormed(resumed);
    expect(resumed.result).toMatchObject({ ok: true, stopReason: "end_turn" });
    expect(JSON.stringify(resumed.events)).toContain("12A");
  });
});

describe("the reference's client", () => {
  it("gets a refusal, and the call isn't made", async () => {
    const { request, platform } = await requestFor("demo");
    const client = new ReferenceClient(server, request, { id: "s-3", project: "p-1" });
    const paused = await client.say('call mail {"to":"ann"}');
    client.messages.push({
      role: "tool",
      content: [
        {
          type: "tool_result",
          toolCallId: idOf(paused),
          output: { approved: false, interactionToken: "token" },
        },
      ],
    });
    const resumed = await client.say('call mail {"to":"ann"}');
    expectWellFormed(resumed);
    expect(resumed.events).toContainEqual(expect.objectContaining({ type: "tool_result", denied: true }));
    expect(platform.calls).toEqual([]);
  });

  it.each([
    ["another project", { id: "s-4", project: "p-2" }],
    ["another session", { id: "s-5", project: "p-1" }],
  ])("can't carry an approval to %s", async (_what, session) => {
    const { request, platform } = await requestFor("demo");
    const client = new ReferenceClient(server, request, { id: "s-4", project: "p-1" });
    const paused = await client.say('call mail {"to":"ann"}');
    const answer = {
      role: "tool",
      content: [{ type: "tool_result", toolCallId: idOf(paused), output: { approved: true } }],
    };
    const elsewhere = new ReferenceClient(server, request, session);
    elsewhere.messages.push(...client.messages, answer);
    const refused = await elsewhere.say('call mail {"to":"ann"}');
    expect(refused.result).toMatchObject({
      stopReason: "paused",
      warnings: [{ path: expect.stringMatching(/^messages\[\d\]\.content\[0\]$/) }],
    });
    expect(platform.calls).toEqual([]);
    // The control: where it belongs.
    client.messages.push(answer);
    expect((await client.say('call mail {"to":"ann"}')).result?.stopReason).toBe("end_turn");
    expect(platform.calls).toHaveLength(1);
  });

  it("resumes with another server that has the same key, and with no other", async () => {
    const { request, platform } = await requestFor("demo");
    const folder = await emptyFolder();
    const key = (name: string) =>
      writeFile(join(folder, name), randomBytes(32).toString("hex"), { mode: 0o600 });
    await Promise.all([key("key"), key("other")]);
    const [one, replica, stranger] = await Promise.all([
      // Each has a store of its own: servers on one store need one key.
      serve({ AMBIT_INTERACTION_KEY_FILE: `${folder}/key`, AMBIT_SQLITE_FILE: `${folder}/one.sqlite` }),
      serve({ AMBIT_INTERACTION_KEY_FILE: `${folder}/key`, AMBIT_SQLITE_FILE: `${folder}/replica.sqlite` }),
      serve({ AMBIT_INTERACTION_KEY_FILE: `${folder}/other`, AMBIT_SQLITE_FILE: `${folder}/other.sqlite` }),
    ]);
    const client = new ReferenceClient(one, request, { id: null, project: "p-1" });
    const paused = await client.say('call mail {"to":"ann"}');
    const answer = {
      role: "tool",
      content: [{ type: "tool_result", toolCallId: idOf(paused), output: { approved: true } }],
    };
    for (const [where, calls] of [
      [stranger, 0],
      [replica, 1],
    ] as const) {
      const resuming = new ReferenceClient(where, request, { id: null, project: "p-1" });
      resuming.messages.push(...client.messages, answer);
      await resuming.say('call mail {"to":"ann"}');
      expect(platform.calls).toHaveLength(calls);
    }
  });

  it("reads why a stream was refused from its one record", async () => {
    const { request } = await requestFor("demo");
    const sandboxPermission = { network: { mode: "off" }, enforcement: "strict" };
    const client = new ReferenceClient(
      server,
      { ...request, sandboxPermission },
      { id: null, project: "p-1" },
    );
    const refused = await client.say("say hello");
    expect(refused.status).toBe(200);
    expect(refused.records).toHaveLength(1);
    expect(refused.result).toMatchObject({ ok: false, failure: { code: "boundary_refused" } });
  });

  it("ends its session by the project that its requests name", async () => {
    const { request } = await requestFor("demo");
    const client = new ReferenceClient(server, request, { id: "s-6", project: "p-6" });
    await client.say("say hello");
    const kill = (projectId: string) => server.post("/kill", { sessionId: "s-6", projectId });
    expect(await bodyOf(await kill("p-7"))).toMatchObject({ ended: false });
    expect(await bodyOf(await kill("p-6"))).toMatchObject({ ended: true });
  });

  it("gets one end of a cancelled run", async () => {
    const { request } = await requestFor("demo");
    const client = new ReferenceClient(server, request, { id: "s-7", project: "p-1" });
    const running = client.say("say begun\nsleep 60000");
    await expect
      .poll(async () => bodyOf(await server.post("/kill", { sessionId: "s-7", projectId: "p-1" })))
      .toMatchObject({ ended: true });
    const cancelled = await running;
    expectWellFormed(cancelled);
    expect(cancelled.result).toMatchObject({ ok: true, stopReason: "cancelled" });
  });
});

function idOf({ events }: ReferenceTurn): string {
  const asked = events.find((event) => event.type === "interaction_request");
  return questionSchema.parse(asked?.payload).toolCallId;
}
