import callback from "@ambit/executor-callback";
import sqlite from "@ambit/store-sqlite";
import { describe, expect, it } from "vitest";
import type { ConfigurationInput } from "../../src/configuration/schema.js";
import { newToken } from "../../src/tenants/caller.js";
import { type Script, saying, scriptedAgent, waiting } from "../support/scripted-agent.js";
import { asking, bodyOf, serveScript } from "../support/server.js";
import { databaseFile } from "../support/stored-server.js";

const one = newToken();
const two = newToken();
const operator = "operators-own-token";
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

interface Body {
  readonly runId: string;
  readonly error?: string;
  readonly warnings?: readonly { readonly path: string }[];
  readonly failure?: { readonly issues?: readonly { readonly path: string; readonly message: string }[] };
}

async function serveTenants(script: Script, ofOne: object = {}, given: ConfigurationInput = {}) {
  const tokens = [
    { token: one.hash, project: "one", ...ofOne },
    { token: two.hash, project: "two" },
  ];
  const served = await serveScript(script, {
    token: operator,
    configuration: { server: { drainMs: 100 }, ...given, tokens },
  });
  const run = (token: string, body: object = {}, headers = {}) =>
    served.post("/run", { ...asking, ...body }, { ...bearer(token), ...headers });
  const get = (path: string, token: string) => fetch(`${served.url}${path}`, { headers: bearer(token) });
  return { ...served, run, get };
}

async function serveStoredTenants(script: Script, ofOne: object = {}, given: ConfigurationInput = {}) {
  const file = await databaseFile();
  return serveTenants(script, ofOne, {
    ...given,
    plugins: [scriptedAgent(script), { use: sqlite, config: { file } }],
  });
}

describe("a destination of the runner's own network", () => {
  const toolCallback = { endpoint: "http://127.0.0.1:9/tools" };
  const customTools = [{ name: "look_up", kind: "callback", callRef: "look_up" }];
  const refused = async (
    { run }: Awaited<ReturnType<typeof serveTenants>>,
    body: object,
  ): Promise<string | undefined> => {
    const answer = await bodyOf<Body>(await run(one.token, body));
    return answer.failure?.issues?.map(({ message }) => message).join("; ");
  };
  const plugins = (privateHosts?: "allow") => [
    scriptedAgent(saying("Hello.")),
    { use: callback, config: privateHosts === undefined ? {} : { privateHosts } },
  ];

  it("isn't posted to for a tenant, unless the deployer allows it", async () => {
    const closed = await serveTenants(saying("Hello."), {}, { plugins: plugins() });
    expect(await refused(closed, { customTools, toolCallback })).toContain("127.0.0.1 is loopback");
    const open = await serveTenants(saying("Hello."), {}, { plugins: plugins("allow") });
    expect(await refused(open, { customTools, toolCallback })).not.toContain("loopback");
  });

  it("gets no webhook of a tenant's run, unless the deployer allows it", async () => {
    const webhookSecret = `whsec_${Buffer.alloc(32, 1).toString("base64")}`;
    const webhook = { url: "http://127.0.0.1:9/" };
    const closed = await serveStoredTenants(saying("Hello."), { webhookSecret });
    expect(await refused(closed, { webhook })).toContain("127.0.0.1 is loopback");
    const settings = { webhooks: { privateHosts: "allow" as const } };
    const open = await serveStoredTenants(saying("Hello."), { webhookSecret }, settings);
    expect(await refused(open, { webhook })).toBeUndefined();
  });
});

describe("a tenant's token", () => {
  it("is one of the configuration's; a wrong one, or none, is refused", async () => {
    const { run, post } = await serveTenants(saying("Hello."));
    expect((await run(one.token)).status).toBe(200);
    expect((await run(operator)).status).toBe(200);
    expect((await run(newToken().token)).status).toBe(401);
    // The hash is no token.
    expect((await run(one.hash)).status).toBe(401);
    expect((await post("/run", asking)).status).toBe(401);
  });

  it("guards a server without an operator's token too", async () => {
    const { post } = await serveScript(saying("Hello."), {
      configuration: { tokens: [{ token: one.hash, project: "one" }] },
    });
    expect((await post("/run", asking)).status).toBe(401);
    expect((await post("/run", asking, bearer(one.token))).status).toBe(200);
  });

  it("isn't the operator's: it can't read metrics of all projects", async () => {
    const { get } = await serveTenants(saying("x"));
    expect((await get("/metrics", one.token)).status).toBe(403);
    expect((await get("/metrics", operator)).status).toBe(404);
  });

  it.for([
    ["projectId", { projectId: "two" }],
    ["runContext.project.id", { runContext: { project: { id: "two" } } }],
  ] as const)("doesn't open another project, whatever %s says", async ([path, body]) => {
    const { run } = await serveTenants(saying("x"));
    const refused = await run(one.token, body);
    expect(refused.status).toBe(400);
    expect((await bodyOf<Body>(refused)).failure?.issues).toMatchObject([{ path }]);
    expect((await run(two.token, body)).status).toBe(200);
  });

  it("keeps its project's sessions apart from another's of equal id, and keeps none without a project", async () => {
    const { run, runner } = await serveTenants(saying("x"));
    for (const token of [one.token, two.token])
      expect((await run(token, { sessionId: "s" })).status).toBe(200);
    expect(runner.sessions.map(({ project }) => project).toSorted()).toEqual(["one", "two"]);
    const { warnings } = await bodyOf<Body>(await run(operator, { sessionId: "s" }));
    expect(warnings).toMatchObject([{ path: "sessionId" }]);
    expect(runner.sessions).toHaveLength(2);
  });

  it("can't read, cancel, answer or end anything of another project, without a store", async () => {
    const { run, post, get, runner } = await serveTenants(waiting);
    const running = run(one.token, { runId: "mine", sessionId: "s" });
    await expect.poll(() => runner.has("one/mine")).toBe(true);
    expect((await get("/runs/mine/request", two.token)).status).toBe(404);
    // The control.
    expect((await get("/runs/mine/request", one.token)).status).toBe(200);
    expect((await post("/runs/mine/cancel", {}, bearer(two.token))).status).toBe(404);
    expect((await post("/runs/mine/interactions/x", {}, bearer(two.token))).status).toBe(404);
    const kill = await post("/kill", { sessionId: "s", projectId: "one" }, bearer(two.token));
    expect(kill.status).toBe(400);
    expect(await (await post("/kill", { sessionId: "s" }, bearer(two.token))).json()).toMatchObject({
      ended: false,
      message: 'There is no session "s": it has ended already, or never began.',
    });
    expect(runner.has("one/mine")).toBe(true);
    expect((await post("/runs/mine/cancel", {}, bearer(one.token))).status).toBe(200);
    expect((await running).status).toBe(200);
  });

  it("stops its own session's turn by POST /cancel, and no other caller's run of the same id", async () => {
    const { run, post, runner } = await serveTenants(waiting);
    const running = [
      run(operator, { runId: "same", projectId: "two" }),
      run(one.token, { runId: "same", sessionId: "s" }),
    ];
    for (const key of ["same", "one/same"]) await expect.poll(() => runner.has(key)).toBe(true);
    const stopping = post("/cancel", { id: "c", sessionId: "s" }, bearer(one.token));
    await expect.poll(() => ["same", "one/same"].map((key) => runner.has(key))).toEqual([true, false]);
    expect(await (await stopping).json()).toMatchObject({ result: "applied" });
    await post("/runs/same/cancel?projectId=two", {}, bearer(operator));
    await Promise.all(running);
  });

  it("sees its own project's stored runs, sessions and interactions, and no other's", async () => {
    const { run, get, post, url } = await serveStoredTenants(saying("secret of one"));
    const { runId } = await bodyOf<Body>(await run(one.token, { sessionId: "s" }));
    const list = async (path: string, token: string) => JSON.stringify(await (await get(path, token)).json());
    for (const token of [one.token, operator]) {
      expect((await get(`/runs/${runId}`, token)).status).toBe(200);
      expect(await list("/runs", token)).toContain(runId);
      expect(await list("/sessions", token)).toContain('"s"');
    }
    for (const path of [`/runs/${runId}`, `/runs/${runId}/events`])
      expect((await get(path, two.token)).status).toBe(404);
    for (const path of ["/runs", "/sessions", "/interactions"])
      expect(await list(path, two.token)).toMatch(/^\{"\w+":\[\]\}$/);
    for (const path of ["/runs", "/sessions"])
      expect((await get(`${path}?projectId=one`, two.token)).status).toBe(400);
    expect((await post(`/runs/${runId}/cancel`, {}, bearer(two.token))).status).toBe(404);
    const gone = await fetch(`${url}/runs/${runId}`, { method: "DELETE", headers: bearer(two.token) });
    expect(gone.status).toBe(404);
  });

  it("has run ids and idempotency keys of its own, in a store", async () => {
    let turns = 0;
    const { run, get, url } = await serveStoredTenants(async function* () {
      turns += 1;
      yield { type: "message", text: `turn ${turns}` };
      yield { type: "done", stopReason: "end_turn" };
    });
    const key = { "idempotency-key": "same" };
    // The first is repeated with its result, and tells the second nothing.
    for (const [token, said] of [
      [one.token, "turn 1"],
      [one.token, "turn 1"],
      [two.token, "turn 2"],
      [two.token, "turn 2"],
      [operator, "turn 3"],
    ] as const) {
      const response = await run(token, {}, key);
      expect([response.status, response.headers.get("x-ambit-run-id")]).toEqual([200, "same"]);
      expect(await response.json()).toMatchObject({ runId: "same", output: said });
    }
    const output = async (path: string, token: string) => {
      const info = await bodyOf<Body & { readonly result?: { readonly output: string } }>(
        await get(path, token),
      );
      return info.result?.output ?? info.failure?.issues;
    };
    expect(await output("/runs/same", one.token)).toBe("turn 1");
    expect(await output("/runs/same", two.token)).toBe("turn 2");
    expect(await output("/runs/same?projectId=two", operator)).toBe("turn 2");
    expect(await output("/runs/same", operator)).toMatchObject([{ path: "projectId" }]);
    const events = await (await get("/runs/same/events", two.token)).text();
    expect(events).toContain("turn 2");
    const { runs } = await bodyOf<{ readonly runs: readonly Body[] }>(await get("/runs", operator));
    expect(runs.map(({ runId }) => runId)).toEqual(["same", "same", "same"]);
    expect(await (await get("/runs?after=same", one.token)).json()).toEqual({ runs: [] });
    const remove = (token: string) => fetch(`${url}/runs/same`, { method: "DELETE", headers: bearer(token) });
    expect([(await remove(two.token)).status, (await remove(two.token)).status]).toEqual([200, 404]);
    expect(await output("/runs/same", one.token)).toBe("turn 1");
  });

  it("has run ids of its own while they are in progress, with and without a store", async () => {
    for (const { run, post, runner } of [await serveTenants(waiting), await serveStoredTenants(waiting)]) {
      const running = [one.token, two.token].map((token) => run(token, { runId: "same" }));
      for (const project of ["one", "two"]) await expect.poll(() => runner.has(`${project}/same`)).toBe(true);
      expect((await post("/runs/same/cancel", {}, bearer(operator))).status).toBe(400);
      expect((await post("/runs/same/cancel", {}, bearer(two.token))).status).toBe(200);
      await running[1];
      expect([runner.has("one/same"), runner.has("two/same")]).toEqual([true, false]);
      expect((await post("/runs/same/cancel?projectId=one", {}, bearer(operator))).status).toBe(200);
      await running[0];
    }
  });
});

describe("a tenant's permissions and limits", () => {
  it("include its sandboxes and agents: others are unknown to it", async () => {
    const { run } = await serveTenants(saying("x"), { sandboxes: ["none"], harnesses: ["scripted"] });
    expect((await run(one.token, { harness: "scripted", sandbox: "none" })).status).toBe(200);
    await expect(serveTenants(saying("x"), { sandboxes: ["docker"] })).rejects.toThrow(
      "tokens[0].sandboxes: 'docker' isn't loaded; expected one of none",
    );
  });

  it("include a permission ceiling, in addition to everyone's", async () => {
    const asked: string[] = [];
    const script: Script = async function* (turn) {
      const question = { toolCallId: "c", toolName: "remove", input: {} };
      asked.push(await turn.onPermission(question));
      yield { type: "message", text: "done" };
      yield { type: "done", stopReason: "end_turn" };
    };
    const { run } = await serveTenants(script, { permissions: { deny: ["remove"] } });
    const body = { permissions: { default: "allow" } };
    for (const token of [one.token, two.token]) await run(token, body);
    expect(asked).toEqual(["deny", "allow"]);
  });

  describe("of several tokens of a project", () => {
    const strict = newToken();
    const tokens = [
      { token: one.hash, project: "one" },
      { token: strict.hash, project: "one", permissions: { deny: ["remove"] } },
    ];

    /** A run of the operator has the only slot, and one of the strict token waits behind it. */
    async function queueBehind(script: Script) {
      const file = await databaseFile();
      const serve = (given: typeof tokens) =>
        serveScript(script, {
          token: operator,
          configuration: {
            server: { drainMs: 100 },
            limits: { concurrentRuns: 1 },
            plugins: [scriptedAgent(script), { use: sqlite, config: { file } }],
            tokens: given,
          },
        });
      const served = await serve(tokens);
      void served.post("/run", { ...asking, runId: "first" }, bearer(operator));
      await expect.poll(() => served.runner.has("first")).toBe(true);
      const body = { ...asking, runId: "second", permissions: { default: "allow" } };
      const headers = { ...bearer(strict.token), prefer: "respond-async" };
      expect((await served.post("/run", body, headers)).status).toBe(202);
      const ended = async (url: string) => {
        const second = async () =>
          bodyOf<{ state: string; result?: object }>(
            await fetch(`${url}/runs/second`, { headers: bearer(one.token) }),
          );
        await expect.poll(async () => (await second()).state, { timeout: 5_000 }).toBe("ended");
        return (await second()).result;
      };
      return { ...served, serve, ended };
    }

    it("those of the token that queued a run hold for it", async () => {
      const asked: string[] = [];
      let turns = 0;
      const { post, url, ended } = await queueBehind(async function* (turn) {
        turns += 1;
        if (turns === 1) return yield* waiting(turn);
        asked.push(await turn.onPermission({ toolCallId: "c", toolName: "remove", input: {} }));
        yield { type: "done", stopReason: "end_turn" };
      });
      await post("/runs/first/cancel", {}, bearer(operator));
      expect(await ended(url)).toMatchObject({ ok: true });
      expect(asked).toEqual(["deny"]);
    });

    it("a queued run fails when its token was withdrawn, and another of its project wasn't", async () => {
      const { server, serve, ended } = await queueBehind(waiting);
      await server.close();
      const { url } = await serve(tokens.slice(0, 1));
      expect(await ended(url)).toMatchObject({ ok: false, failure: { code: "unauthorized" } });
    });
  });

  it("limit simultaneous runs: a further one gets 429 with Retry-After, and another project's starts", async () => {
    const { run, runner, post } = await serveTenants(waiting, { limits: { concurrentRuns: 1 } });
    const running = run(one.token, { runId: "first" });
    await expect.poll(() => runner.has("one/first")).toBe(true);
    const refused = await run(one.token);
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    const others = run(two.token, { runId: "other" });
    await expect.poll(() => runner.has("two/other")).toBe(true);
    for (const id of ["first", "other"]) await post(`/runs/${id}/cancel`, {}, bearer(operator));
    await Promise.all([running, others]);
    const third = run(one.token, { runId: "third" });
    await expect.poll(() => runner.has("one/third")).toBe(true);
    await post("/runs/third/cancel", {}, bearer(one.token));
    expect((await third).status).toBe(200);
  });

  it("free the slot of a refused request", async () => {
    const { run } = await serveTenants(saying("x"), { limits: { concurrentRuns: 1 } });
    for (let each = 0; each < 3; each += 1)
      expect((await run(one.token, { harness: "no" })).status).toBe(400);
    expect((await run(one.token)).status).toBe(200);
  });

  describe("limit open sessions", () => {
    const limits = { limits: { sessions: 1 } };
    const namesOf = ({ runner }: Awaited<ReturnType<typeof serveTenants>>) =>
      runner.sessions.map(({ session }) => session);

    it.for([{ sessionId: "second" }, { session_id: "second" }])("in any spelling: %j", async (body) => {
      const plugins = [scriptedAgent(saying("x")), "@ambit/compat-agenta"];
      const served = await serveTenants(saying("x"), limits, { plugins });
      const statusOf = async (more: object) => (await served.run(one.token, more)).status;
      expect(await statusOf({ sessionId: "first" })).toBe(200);
      const refused = await served.run(one.token, body);
      expect([refused.status, await refused.json()]).toMatchObject([
        429,
        { error: "The project has reached its quota: 1 open sessions. End one of them." },
      ]);
      expect([await statusOf({ sessionId: "first" }), await statusOf({})]).toEqual([200, 200]);
      expect(namesOf(served)).toEqual(["first"]);
    });

    it("of detached runs too: they wait until a session ends, and keep no other project waiting", async () => {
      let turns = 0;
      const script: Script = async function* (turn) {
        turns += 1;
        yield* (turns === 2 ? waiting : saying("x"))(turn);
      };
      const served = await serveStoredTenants(script, limits, { limits: { concurrentRuns: 1 } });
      const { run, get, post, url } = served;
      await run(one.token, { sessionId: "first" });
      // It has the only slot, so that all later ones are queued.
      const before = run(operator, { runId: "before" });
      await expect.poll(() => turns).toBe(2);
      const detached = async (token: string, sessionId: string) =>
        (await bodyOf<Body>(await run(token, { sessionId }, { prefer: "respond-async" }))).runId;
      const stateOf = async (id: string) =>
        (await bodyOf<{ state: string }>(await get(`/runs/${id}`, operator))).state;
      const waits = await detached(one.token, "second");
      const other = await detached(two.token, "third");
      await post("/runs/before/cancel", {}, bearer(operator));
      await before;
      await expect.poll(() => stateOf(other)).toBe("ended");
      expect([await stateOf(waits), namesOf(served).toSorted()]).toEqual(["queued", ["first", "third"]]);
      await fetch(`${url}/sessions/first`, { method: "DELETE", headers: bearer(one.token) });
      await expect.poll(() => stateOf(waits), { timeout: 5_000 }).toBe("ended");
      expect(namesOf(served).toSorted()).toEqual(["second", "third"]);
    });
  });

  it("gets no more of the queue than it leaves to others", async () => {
    const { run } = await serveStoredTenants(
      waiting,
      { limits: { concurrentRuns: 1 } },
      {
        limits: { concurrentRuns: 1 },
        store: { queuedRuns: 4 },
      },
    );
    const detach = async (token: string) => (await run(token, {}, { prefer: "respond-async" })).status;
    // The first one runs. Of the four places its project gets two, and another one still finds one.
    expect([await detach(one.token), await detach(one.token), await detach(one.token)]).toEqual([
      202, 202, 202,
    ]);
    const refused = await run(one.token, {}, { prefer: "respond-async" });
    expect([refused.status, await refused.json()]).toMatchObject([
      429,
      { error: "2 runs of the project are already queued." },
    ]);
    expect([await detach(two.token), await detach(operator), await detach(operator)]).toEqual([
      202, 202, 429,
    ]);
  });

  it("detached, waits in line, and keeps no other project waiting", async () => {
    const gates: (() => void)[] = [];
    const script: Script = async function* () {
      await new Promise<void>((resolve) => gates.push(resolve));
      yield { type: "message", text: "done" };
      yield { type: "done", stopReason: "end_turn" };
    };
    const proceed = () => {
      for (const open of gates.splice(0)) open();
    };
    const limits = { concurrentRuns: 1 };
    const { run, get } = await serveStoredTenants(script, { limits });
    const detached = async (token: string) =>
      (await bodyOf<Body>(await run(token, {}, { prefer: "respond-async" }))).runId;
    const first = await detached(one.token);
    await expect.poll(() => gates.length).toBe(1);
    const second = await detached(one.token);
    const stateOf = async (id: string) =>
      (await bodyOf<{ state: string }>(await get(`/runs/${id}`, operator))).state;
    expect(await stateOf(second)).toBe("queued");
    const other = await detached(two.token);
    await expect.poll(() => stateOf(other)).toBe("running");
    expect(await stateOf(second)).toBe("queued");
    await expect.poll(() => gates.length).toBe(2);
    proceed();
    await expect.poll(() => stateOf(first)).toBe("ended");
    await expect.poll(() => stateOf(second), { timeout: 5_000 }).toBe("running");
    // It began as its tenant's.
    expect(await (await get(`/runs/${second}`, one.token)).json()).toMatchObject({ projectId: "one" });
    expect((await get(`/runs/${second}`, two.token)).status).toBe(404);
    await expect.poll(() => gates.length).toBe(1);
    proceed();
    await expect.poll(() => stateOf(second)).toBe("ended");
  });
});
