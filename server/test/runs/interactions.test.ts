import { definePlugin } from "@ambit/core/plugin";
import type { InteractionQuery, StoredInteraction } from "@ambit/durable/store";
import { sqliteStore } from "@ambit/store-sqlite";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { Script } from "../support/scripted-agent.js";
import { asking, bodyOf } from "../support/server.js";
import { databaseFile, describePlaces, serveStored } from "../support/stored-server.js";

/** Asks to do the same thing in each turn, and prints the answer. */
const cautious: Script = async function* ({ onPermission }) {
  const verdict = await onPermission({ toolCallId: "c1", toolName: "wipe", input: { path: "/tmp" } });
  if (verdict === "park") return;
  yield { type: "message", text: `wipe: ${verdict}` };
  yield { type: "done", stopReason: "end_turn" };
};

interface Result {
  readonly runId: string;
  readonly stopReason?: string;
  readonly output?: string;
  readonly sessionId: string;
}
interface Failed {
  readonly failure: { readonly issues: readonly { readonly path: string }[] };
}
interface Listed {
  readonly interactions: readonly { readonly id: string; readonly runId: string; readonly payload: object }[];
}

const turn = { ...asking, sessionId: "s", permissions: { default: "ask" } };

describe("a question of a paused run", () => {
  it("is answered on another server after a restart, and the answer is used by the next turn, once", async () => {
    const file = await databaseFile();
    const one = await serveStored(cautious, { file });
    const paused = await bodyOf<Result>(await one.post("/run", turn));
    expect(paused.stopReason).toBe("paused");
    await one.server.close();
    const [two, three] = [await serveStored(cautious, { file }), await serveStored(cautious, { file })];
    const { interactions } = await bodyOf<Listed>(await two.get("/interactions?state=open"));
    expect(interactions).toMatchObject([
      {
        runId: paused.runId,
        sessionId: "s",
        state: "open",
        payload: { toolName: "wipe", input: { path: "/tmp" } },
      },
    ]);
    const path = `/runs/${paused.runId}/interactions/${interactions[0]?.id}`;
    expect((await two.post(path, { output: 1 })).status).toBe(400);
    expect((await two.post(path, { approved: true })).status).toBe(200);
    expect((await three.post(path, { approved: false })).status).toBe(404);
    expect(await bodyOf<Result>(await three.post("/run", turn))).toMatchObject({ output: "wipe: allow" });
    expect(await (await two.get("/interactions?state=used")).json()).toMatchObject({
      interactions: [
        {
          id: interactions[0]?.id,
          answeredAt: expect.stringMatching(/Z$/),
          answeredBy: { caller: "operator", approved: true },
        },
      ],
    });
    // Each answer allows one call.
    expect(await bodyOf<Result>(await three.post("/run", turn))).toMatchObject({ stopReason: "paused" });
  });

  it("can be answered in messages once over all servers", async () => {
    const file = await databaseFile();
    const [one, two] = [await serveStored(cautious, { file }), await serveStored(cautious, { file })];
    await one.post("/run", turn);
    const { interactions } = await bodyOf<Listed>(await one.get("/interactions?state=open"));
    const block = { type: "tool_result", toolCallId: interactions[0]?.id, output: { approved: true } };
    const answered = { ...turn, messages: [...asking.messages, { role: "user", content: [block] }] };
    expect(await bodyOf<Result>(await one.post("/run", answered))).toMatchObject({ output: "wipe: allow" });
    await one.server.close();
    const again = await bodyOf<Result>(await two.post("/run", answered));
    expect(again).toMatchObject({ stopReason: "paused" });
  });
});

/** SQLite, with the questions that it was asked for. */
function watched(file: string, read: StoredInteraction[]) {
  const backend = sqliteStore({ file, durability: "process" });
  return definePlugin({
    name: "watched",
    api: 1,
    config: z.strictObject({}),
    register: (registrar) =>
      registrar.add("store", {
        ...backend,
        open: async (context) => {
          const store = await backend.open(context);
          return {
            ...store,
            interactions: async (query: InteractionQuery) => {
              const found = await store.interactions(query);
              read.push(...found);
              return found;
            },
          };
        },
      }),
  });
}

it("reads no question's arguments and no other answers to answer one, however many a run has asked", async () => {
  const input = { path: "x".repeat(50_000) };
  const script: Script = async function* ({ onPermission }) {
    const ask = (id: string) => onPermission({ toolCallId: id, toolName: "wipe", input: { ...input, id } });
    const verdicts = await Promise.all(["c1", "c2", "c3"].map(ask));
    if (verdicts.includes("park")) return;
    yield { type: "message", text: verdicts.join() };
    yield { type: "done", stopReason: "end_turn" };
  };
  const read: StoredInteraction[] = [];
  const file = await databaseFile();
  const { post, get } = await serveStored(script, { file, store: watched(file, read) });
  const { runId } = await bodyOf<Result>(await post("/run", turn));
  const { interactions } = await bodyOf<Listed>(await get("/interactions?state=open"));
  expect(interactions).toHaveLength(3);
  // Control: a list has the arguments.
  expect(read.map(({ payload }) => payload.length > 50_000)).toEqual([true, true, true]);
  read.length = 0;
  expect((await post(`/runs/${runId}/interactions/none`, { approved: true })).status).toBe(404);
  for (const { id } of interactions)
    expect((await post(`/runs/${runId}/interactions/${id}`, { approved: true })).status).toBe(200);
  expect(read.map(({ id, payload, answer }) => [id, payload, answer])).toEqual(
    interactions.map(({ id }) => [id, "", undefined]),
  );
  read.length = 0;
  const next = { sessionId: "s", permissions: { default: "ask" } };
  expect((await post("/plan", next)).status).toBe(200);
  // An answer is read when its call is made.
  expect(read.map(({ payload, answer }) => [payload, answer])).toEqual(
    interactions.map(() => ["", undefined]),
  );
  read.length = 0;
  await get("/interactions?state=answered");
  expect(read.map(({ answer }) => answer)).toEqual([undefined, undefined, undefined]);
  expect(await bodyOf<Result>(await post("/run", next))).toMatchObject({ output: "allow,allow,allow" });
});

describePlaces("a question of a paused run", (serve) => {
  it.each([
    ["no messages", {}],
    ["an empty list", { messages: [] }],
    ["an empty text", { messages: [{ role: "user", content: "" }] }],
  ])("is answered, and the next turn has %s", async (_what, said) => {
    const { post, get } = await serve(cautious);
    const next = { sessionId: "s", permissions: { default: "ask" }, ...said };
    const missing = { status: 400, path: "messages" };
    const refused = async (path: string, body: object) => {
      const response = await post(path, body);
      const { failure } = await bodyOf<Failed>(response);
      return { status: response.status, path: failure.issues[0]?.path };
    };
    expect(await refused("/run", next)).toEqual(missing);
    const paused = await bodyOf<Result>(await post("/run", turn));
    const { interactions } = await bodyOf<Listed>(await get("/interactions?state=open"));
    // Not before the answer.
    expect(await refused("/run", next)).toEqual(missing);
    await post(`/runs/${paused.runId}/interactions/${interactions[0]?.id}`, { approved: true });
    // Only in its session.
    for (const other of [{ sessionId: "t" }, { sessionId: undefined }, { projectId: "p" }])
      expect(await refused("/run", { ...next, ...other })).toEqual(missing);
    expect((await post("/plan", next)).status).toBe(200);
    expect(await bodyOf<Result>(await post("/run", next))).toMatchObject({ output: "wipe: allow" });
    // Only once.
    expect(await refused("/plan", next)).toEqual(missing);
  });

  it("of a run that named no session is continued without messages in the one that its result names", async () => {
    const { post, get } = await serve(cautious);
    const paused = await bodyOf<Result>(await post("/run", { ...turn, sessionId: undefined }));
    const { interactions } = await bodyOf<Listed>(await get("/interactions?state=open"));
    await post(`/runs/${paused.runId}/interactions/${interactions[0]?.id}`, { approved: false });
    const next = { sessionId: paused.sessionId, permissions: { default: "ask" } };
    expect(await bodyOf<Result>(await post("/run", next))).toMatchObject({ output: "wipe: deny" });
  });

  it("of another project or session isn't accessible", async () => {
    const { post, get } = await serve(cautious);
    await post("/run", { ...turn, projectId: "p" });
    const { interactions } = await bodyOf<Listed>(await get("/interactions?state=open&projectId=p"));
    expect(await (await get("/interactions?state=open&projectId=q")).json()).toEqual({ interactions: [] });
    const [asked] = interactions;
    await post(`/runs/${asked?.runId}/interactions/${asked?.id}`, { approved: true });
    for (const other of [{ projectId: "q" }, {}, { projectId: "p", sessionId: "t" }])
      expect(await bodyOf<Result>(await post("/run", { ...turn, ...other }))).toMatchObject({
        stopReason: "paused",
      });
    expect(await bodyOf<Result>(await post("/run", { ...turn, projectId: "p" }))).toMatchObject({
      output: "wipe: allow",
    });
  });
});

describePlaces("a question that the agent withdraws", (serve) => {
  it("is over: it takes no answer, and its readers and lists say so", async () => {
    const withdrawal = new AbortController();
    const script: Script = async function* ({ onPermission }) {
      const wipe = { toolCallId: "c1", toolName: "wipe", input: { path: "/tmp" } };
      yield { type: "message", text: `wipe: ${await onPermission(wipe, withdrawal.signal)}` };
      await onPermission({ ...wipe, toolCallId: "c2" });
      yield { type: "done", stopReason: "end_turn" };
    };
    const { post, get } = await serve(script);
    const running = post("/run", { ...turn, interactions: { waitMs: 20_000 } });
    const listed = async (state: string) =>
      (await bodyOf<Listed>(await get(`/interactions?state=${state}`))).interactions;
    await expect.poll(() => listed("open")).toHaveLength(1);
    const [{ id, runId } = { id: "", runId: "" }] = await listed("open");
    withdrawal.abort();
    const answer = (question: string) => post(`/runs/${runId}/interactions/${question}`, { approved: true });
    await expect.poll(() => listed("withdrawn")).toMatchObject([{ id, state: "withdrawn" }]);
    await expect.poll(() => listed("open")).toHaveLength(1);
    const whileRunning = await answer(id);
    // Control: the question that it asks again takes its answer.
    const [again] = await listed("open");
    expect((await answer(again?.id ?? "")).status).toBe(200);
    const result = await bodyOf<Result>(await running);
    expect(result).toMatchObject({ stopReason: "end_turn", output: "wipe: deny" });
    for (const refused of [whileRunning, await answer(id)]) {
      expect([refused.status, await refused.json()]).toMatchObject([
        410,
        { error: expect.stringContaining("withdrawn"), failure: { code: "interaction_expired" } },
      ]);
    }
    const events = await (await get(`/runs/${runId}/events?after=0`)).text();
    const expired = { type: "interaction_expired", id, kind: "user_approval" };
    expect(events).toContain(JSON.stringify(expired));
  });
});

describe("a question of a waiting run", () => {
  it("gets its answer through another server", async () => {
    const file = await databaseFile();
    const [one, two] = [await serveStored(cautious, { file }), await serveStored(cautious, { file })];
    const answer = one.post("/run", { ...turn, interactions: { waitMs: 20_000 } });
    const open = async () => (await bodyOf<Listed>(await two.get("/interactions?state=open"))).interactions;
    await expect.poll(open).toHaveLength(1);
    const [asked] = await open();
    expect(
      (await two.post(`/runs/${asked?.runId}/interactions/${asked?.id}`, { approved: false })).status,
    ).toBe(200);
    expect(await bodyOf<Result>(await answer)).toMatchObject({ output: "wipe: deny" });
  });
});
