import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { AmbitClient } from "@ambit/client";
import { type Door, type DoorCall, definePlugin, ModelFailed, RequestInvalid } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { newToken } from "../../src/tenants/caller.js";
import { type Script, saying } from "../support/scripted-agent.js";
import { asking, bodyOf, hasRoom, recordsOf, serveScript } from "../support/server.js";

/** A door whose one route does what the test says. */
function doorThat(handle: (call: DoorCall) => Promise<Response>, more: Partial<Door> = {}) {
  const routes = [{ method: "POST", path: "/odd/chats/{chat}", summary: "Chats", handle }] as const;
  return definePlugin({
    name: "odd-plugin",
    api: 1,
    config: z.strictObject({}),
    register: ({ add }) => add("door", { name: "odd", routes, ...more }),
  });
}

/** Hands its body to the API as it came. */
const passing = async ({ request, json, fetch }: DoorCall) =>
  fetch("http://ambit/stream", {
    method: "POST",
    body: JSON.stringify(await json()),
    signal: request.signal,
  });

const endless: Script = async function* ({ signal }) {
  yield { type: "message", text: "begun" };
  await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  yield { type: "done", stopReason: "end_turn" };
};

/** How a door passes the signal of its client on. */
const leaving: readonly [string, (call: DoorCall, path: string) => Promise<Response>][] = [
  [
    "by its signal alone",
    async ({ request: { signal }, json, fetch }, path) =>
      fetch(`http://ambit${path}`, { method: "POST", body: JSON.stringify(await json()), signal }),
  ],
  [
    "by a request of its own",
    async ({ request: { signal }, json, fetch }, path) => {
      const body = JSON.stringify(await json());
      return fetch(new Request(`http://ambit${path}`, { method: "POST", body, signal }));
    },
  ],
];

/** A busy server does so too. Nothing that a door let go may be needed. */
async function collectGarbage(): Promise<void> {
  setFlagsFromString("--expose-gc");
  // What is referred to weakly stays until the turn ends in which it was looked at.
  await nextTurn();
  runInNewContext("gc")();
  await nextTurn();
}

const serve = (script: Script, door: ReturnType<typeof doorThat>, configuration = {}) =>
  serveScript(script, { plugins: [door], configuration });

describe("a door", () => {
  it("streams a run that it begins through the API", async () => {
    const { post } = await serve(saying("hello"), doorThat(passing));
    const records = await recordsOf(await post("/odd/chats/c1", asking));
    expect(records.at(-1)).toMatchObject({ kind: "result", result: { ok: true, output: "hello" } });
  });

  it("acts as its caller: a tenant's project, and none without a token", async () => {
    const tenant = newToken();
    const door = doorThat(async (call) => {
      const { request, fetch } = call;
      const runs = await (await passing(call)).text().then(() => fetch("http://ambit/runs"));
      const body: unknown = await runs.json();
      return Response.json({ body, headers: [...request.headers.keys()], chat: call.path("chat") });
    });
    const { post } = await serve(saying("hello"), door, {
      tokens: [{ token: tenant.hash, project: "mine" }],
    });
    expect((await post("/odd/chats/c1", asking)).status).toBe(401);
    const authorization = `Bearer ${tenant.token}`;
    const answer = await (await post("/odd/chats/a%2Fb", asking, { authorization, cookie: "a=b" })).json();
    expect(answer).toMatchObject({ chat: "a/b", body: { runs: [{ projectId: "mine" }] } });
    expect(JSON.stringify(answer)).not.toMatch(/authorization|cookie/);
    const foreign = await post("/odd/chats/c1", { ...asking, projectId: "other" }, { authorization });
    expect(await foreign.json()).toMatchObject({ body: { runs: [{ projectId: "mine" }] } });
  });

  it("knows a caller again in each of its requests, a page also by a new token, and no other one", async () => {
    const [ours, theirs] = [newToken(), newToken()];
    const door = doorThat(async ({ callerId }) => new Response(callerId));
    const token = "the-operators";
    const { post } = await serveScript(saying("hello"), {
      token,
      plugins: [door],
      configuration: {
        tokens: [
          { token: ours.hash, project: "ours" },
          { token: theirs.hash, project: "theirs" },
        ],
      },
    });
    const idOf = async (as: string) =>
      await (await post("/odd/chats/c1", {}, { authorization: `Bearer ${as}` })).text();
    const pageOf = async (as: string, body: object) =>
      (await bodyOf<{ token: string }>(await post("/tokens", body, { authorization: `Bearer ${as}` }))).token;
    const callers: readonly (() => Promise<string> | string)[] = [
      () => token,
      () => ours.token,
      () => theirs.token,
      () => pageOf(ours.token, { sessionId: "s", may: ["read", "answer"] }),
      () => pageOf(ours.token, { sessionId: "t", may: ["read", "answer"] }),
      () => pageOf(theirs.token, { sessionId: "s", may: ["read", "answer"] }),
      // It doesn't inherit what one with more rights has begun.
      () => pageOf(ours.token, { sessionId: "s", may: ["read"] }),
    ];
    const ids = () => Promise.all(callers.map(async (caller) => await idOf(await caller())));
    const first = await ids();
    expect(new Set(first).size).toBe(callers.length);
    expect(await ids()).toEqual(first);
    const renewed = await pageOf(ours.token, { sessionId: "s", may: ["answer", "read"], ttlMs: 5_000 });
    expect(await idOf(renewed)).toBe(first[3]);
    expect(first.join()).not.toContain(ours.hash);
  });

  it("serves a page within its session, whose rules hold for what the door calls", async () => {
    const origin = "https://app.example.com";
    const handle = async (call: DoorCall) => {
      const asked = ["/runs", "/plugins", "/runs?sessionId=t"].map((path) =>
        call.fetch(`http://ambit${path}`),
      );
      const statuses = (await Promise.all(asked)).map(({ status }) => status);
      const headers = {
        "x-seen-by": call.caller,
        "x-statuses": statuses.join(),
        "cache-control": "no-cache",
      };
      return new Response((await passing(call)).body, { headers });
    };
    const route = { path: "/odd/chats/{chat}", summary: "Chats", handle };
    const routes = (["GET", "POST"] as const).map((method) => ({ ...route, method }));
    const door = doorThat(handle, { routes });
    const { post, url } = await serve(saying("hello"), door, { server: { origins: [origin] } });
    const made = await post("/tokens", { sessionId: "s", may: ["read", "run"], request: {} });
    const { token } = await bodyOf<{ token: string }>(made);
    const page = { authorization: `Bearer ${token}`, origin };
    const answer = await post("/odd/chats/c1", asking, page);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "x-seen-by": "page",
      "x-statuses": "200,403,400",
      "access-control-allow-origin": origin,
    });
    expect((await recordsOf(answer)).at(-1)).toMatchObject({ result: { output: "hello", sessionId: "s" } });
    // A door whose answer says something else doesn't keep a URL with a token in caches.
    const asked = await fetch(`${url}/odd/chats/c1?token=${token}`, { headers: { origin } });
    expect([asked.status, asked.headers.get("cache-control")]).toEqual([200, "no-store"]);
    const widened = await recordsOf(await post("/odd/chats/c1", { ...asking, customTools: [] }, page));
    expect(widened).toMatchObject([
      { result: { ok: false, failure: { issues: [{ path: "customTools" }] } } },
    ]);
  });

  it("is answered as every route is where it refuses, breaks, or isn't there", async () => {
    const door = doorThat(async ({ json }) => {
      const [{ fails }] = [z.looseObject({ fails: z.string() }).parse(await json())];
      if (fails === "ours") throw new RequestInvalid([{ path: "chat", message: "is wrong" }]);
      if (fails === "theirs") throw new TypeError("undefined is not a function");
      return Reflect.get({}, "response");
    });
    const { post, url } = await serve(saying("hello"), door);
    const refused = await post("/odd/chats/c1", { fails: "ours" });
    expect([refused.status, await refused.json()]).toMatchObject([
      400,
      { failure: { issues: [{ path: "chat", message: "is wrong" }] } },
    ]);
    const broken = await post("/odd/chats/c1", { fails: "theirs" });
    expect([broken.status, await broken.json()]).toMatchObject([
      500,
      { failure: { code: "plugin_broke_contract" } },
    ]);
    expect((await post("/odd/chats/c1", { fails: "nothing" })).status).toBe(500);
    expect((await post("/odd/chats/c1", "{")).status).toBe(400);
    expect((await fetch(`${url}/odd/chats/c1`)).status).toBe(405);
    expect((await post("/odd/others", {})).status).toBe(404);
    const document: unknown = await (await fetch(`${url}/openapi.json`)).json();
    expect(document).toMatchObject({ paths: { "/odd/chats/{chat}": { post: { summary: "Chats" } } } });
  });

  it("passes on what the API refuses to it", async () => {
    const door = doorThat(async ({ fetch }) =>
      Response.json(await new AmbitClient({ fetch }).runInfo("none")),
    );
    const { post } = await serve(saying("hello"), door);
    const refused = await post("/odd/chats/c1", {});
    expect([refused.status, await refused.json()]).toMatchObject([404, { failure: { code: "not_found" } }]);
  });

  it("passes on that its run has failed", async () => {
    const failing: Script = () => {
      throw new ModelFailed("no answer", { upstreamStatus: 503 });
    };
    const door = doorThat(async ({ fetch }) =>
      Response.json(
        await new AmbitClient({ fetch }).run({ messages: [{ role: "user", content: "go" }] }).result,
      ),
    );
    const failed = await (await serve(failing, door)).post("/odd/chats/c1", {});
    expect([failed.status, await failed.json()]).toMatchObject([502, { failure: { code: "model_failed" } }]);
  });

  it.each(leaving)("leaves the run when its client leaves, %s", async (_how, handle) => {
    const door = doorThat((call) => handle(call, "/stream"));
    const { url, post, runner } = await serve(endless, door, { limits: { concurrentRuns: 1 } });
    const leave = new AbortController();
    const body = JSON.stringify(asking);
    const { signal } = leave;
    const response = await fetch(`${url}/odd/chats/c1`, { method: "POST", body, signal });
    await response.body?.getReader().read();
    expect((await post("/run", asking)).status).toBe(429);
    await collectGarbage();
    leave.abort();
    await expect.poll(() => hasRoom(runner)).toBe(true);
  });

  it.each(leaving)("leaves a run before its response has begun, %s", async (_how, handle) => {
    const beginning = Promise.withResolvers<void>();
    const script: Script = (call) => {
      beginning.resolve();
      return endless(call);
    };
    const door = doorThat((call) => handle(call, "/run"));
    const { url, runner } = await serve(script, door, { limits: { concurrentRuns: 1 } });
    const leave = new AbortController();
    const [body, { signal }] = [JSON.stringify(asking), leave];
    const left = fetch(`${url}/odd/chats/c1`, { method: "POST", body, signal }).catch(() => undefined);
    await beginning.promise;
    await collectGarbage();
    leave.abort();
    await left;
    await expect.poll(() => hasRoom(runner)).toBe(true);
  });

  it("leaves a request whose body goes on, with its own reason", async () => {
    const door = doorThat(async ({ fetch }) => {
      const leave = new AbortController();
      const cancelled = Promise.withResolvers<void>();
      const pull = () => {
        leave.abort("gone");
        return new Promise<void>(() => undefined);
      };
      const body = new ReadableStream({ pull, cancel: () => cancelled.resolve() }, { highWaterMark: 0 });
      const options = { method: "POST", body, duplex: "half", signal: leave.signal } as const;
      const reason = await fetch("http://ambit/run", options).catch(String);
      await cancelled.promise;
      return Response.json(reason);
    });
    const { post } = await serve(saying("hello"), door);
    expect(await (await post("/odd/chats/c1", {})).json()).toBe("gone");
  });

  it("ends the connection where its body fails, so that no client takes it for complete", async () => {
    const door = doorThat(async () => {
      let count = 0;
      return new Response(
        new ReadableStream({
          pull(controller) {
            count += 1;
            if (count < 3) controller.enqueue(new TextEncoder().encode(`${count}\n`));
            else controller.error(new Error("the log can't be read"));
          },
        }),
      );
    });
    const { post } = await serve(saying("hello"), door);
    const response = await post("/odd/chats/c1", {});
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow();
  });
});
