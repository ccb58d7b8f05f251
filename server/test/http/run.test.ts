import type { RunResult } from "@ambit/core";
import { HarnessFailed } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { saying, waiting } from "../support/scripted-agent.js";
import { asking, bodyOf, hasRoom, recordsOf, serveScript } from "../support/server.js";

const ndjson = { accept: "application/x-ndjson" };

describe("POST /run", () => {
  it("responds with one result, including events", async () => {
    const { post } = await serveScript(saying("hello"));
    const response = await post("/run", asking);
    const result = await bodyOf<RunResult>(response);
    expect(response.status).toBe(200);
    expect(response.headers.get("x-ambit-run-id")).toBe(result.runId);
    expect(result).toMatchObject({ ok: true, output: "hello", stopReason: "end_turn" });
    expect(result.events).toContainEqual({ type: "message", text: "hello" });
  });

  it.each([
    ["/run", "application/x-ndjson"],
    ["/run", "application/json;q=0.5, application/x-ndjson"],
    ["/stream", "*/*"],
  ])("streams NDJSON from %s for Accept: %s", async (path, accept) => {
    const { post } = await serveScript(saying("one", "two"));
    const response = await post(path, asking, { accept });
    const records = await recordsOf(response);
    expect(response.headers.get("content-type")).toBe("application/x-ndjson");
    expect(records.slice(1, 3)).toEqual([
      { kind: "event", at: expect.any(String), event: { type: "message", text: "one" } },
      { kind: "event", at: expect.any(String), event: { type: "message", text: "two" } },
    ]);
    expect(records.filter(({ kind }) => kind === "result")).toHaveLength(1);
    expect(records.at(-1)).toMatchObject({
      kind: "result",
      result: { ok: true, output: "one\n\ntwo", events: [] },
    });
  });

  it("streams server-sent events, numbered", async () => {
    const { post } = await serveScript(saying("one"));
    const response = await post("/run", asking, { accept: "text/event-stream" });
    const blocks = (await response.text()).split("\n\n").filter((block) => block.startsWith("id: "));
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    expect(blocks.map((block) => /^id: (\d+)\ndata: \{"kind":"/.exec(block)?.[1])).toEqual(
      blocks.map((_, index) => String(index + 1)),
    );
    expect(blocks.at(-1)).toContain('"kind":"result"');
  });

  it("sends the first record while the agent is still working", async () => {
    const { post } = await serveScript(waiting);
    const response = await post("/run", asking, ndjson);
    const reader = response.body?.getReader();
    const first = new TextDecoder().decode((await reader?.read())?.value);
    expect(JSON.parse(first.split("\n")[0] ?? "")).toMatchObject({ kind: "event", event: { name: "run" } });
    await reader?.cancel();
  });

  it("ends a failed run with its result: a status for JSON, a last record for a stream", async () => {
    const { post } = await serveScript(async function* () {
      yield { type: "message", text: "so far" };
      throw new HarnessFailed("The agent broke.");
    });
    const once = await post("/run", asking);
    expect(once.status).toBe(502);
    expect(await once.json()).toMatchObject({
      ok: false,
      error: "The agent broke.",
      failure: { code: "harness_failed", retryable: false },
      output: "so far",
    });
    const stream = await post("/run", asking, ndjson);
    const records = await recordsOf(stream);
    expect(stream.status).toBe(200);
    expect(records.at(-1)).toMatchObject({ kind: "result", result: { ok: false, events: [] } });
  });

  it("treats an empty body as an empty request", async () => {
    const { post } = await serveScript(saying("x"));
    const response = await post("/run", "");
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      failure: {
        code: "request_invalid",
        issues: [{ path: "messages", message: "No user message to send (prompt/messages empty)." }],
      },
    });
  });

  it("cancels the run after its caller has left, and frees its slot", async () => {
    let reason: unknown;
    const { url, runner } = await serveScript(
      async function* (turn) {
        yield* waiting(turn);
        reason = turn.signal.reason;
      },
      { configuration: { limits: { concurrentRuns: 1 } } },
    );
    const abort = new AbortController();
    const init = { method: "POST", body: JSON.stringify(asking), headers: ndjson, signal: abort.signal };
    const response = await fetch(`${url}/run`, init);
    await response.body?.getReader().read();
    expect(() => runner.reserve()).toThrow("capacity");
    abort.abort();
    await expect.poll(() => reason).toMatchObject({ code: "run_cancelled", by: "caller" });
    await expect.poll(() => hasRoom(runner)).toBe(true);
  });

  it("cancels a run by its id; it still ends with its result", async () => {
    const { post } = await serveScript(waiting);
    const response = await post("/run", asking, ndjson);
    const runId = response.headers.get("x-ambit-run-id");
    const cancelled = await post(`/runs/${runId}/cancel`, "");
    expect(await cancelled.json()).toEqual({ ok: true, ended: true });
    expect((await recordsOf(response)).at(-1)).toMatchObject({
      kind: "result",
      result: { ok: true, stopReason: "cancelled" },
    });
    const again = await post(`/runs/${runId}/cancel`, "");
    expect(again.status).toBe(404);
    expect(await again.json()).toMatchObject({ failure: { code: "not_found" } });
  });

  it.each([
    ["runId", { runId: "mine:1" }, {}],
    ["Idempotency-Key", {}, { "idempotency-key": "mine:1" }],
    ["both, when they agree", { runId: "mine:1" }, { "idempotency-key": "mine:1" }],
  ])(
    "cancels a run whose one answer isn't there yet, by the id that its caller gave: %s",
    async (_, body, headers) => {
      let begun = 0;
      const { post } = await serveScript((turn) => {
        begun += 1;
        return waiting(turn);
      });
      const answer = post("/run", { ...asking, ...body }, headers);
      await expect.poll(() => begun).toBe(1);
      const second = await post("/run", { ...asking, runId: "mine:1" });
      expect(second.status).toBe(400);
      expect(await second.json()).toMatchObject({ failure: { issues: [{ path: "runId" }] } });
      expect((await post("/runs/mine:1/cancel", "")).status).toBe(200);
      const response = await answer;
      expect(response.headers.get("x-ambit-run-id")).toBe("mine:1");
      expect(await response.json()).toMatchObject({ ok: true, runId: "mine:1", stopReason: "cancelled" });
    },
  );

  it.each([
    ["a path", { runId: "../other" }, {}, "runId"],
    ["one that is too long", { runId: "x".repeat(129) }, {}, "runId"],
    ["a header that isn't one", {}, { "idempotency-key": "two words" }, "Idempotency-Key"],
    ["two that differ", { runId: "a" }, { "idempotency-key": "b" }, "runId"],
  ])("refuses an id that can't name a run: %s", async (_, body, headers, path) => {
    const { post } = await serveScript(saying("x"));
    const response = await post("/run", { ...asking, ...body }, headers);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ failure: { issues: [{ path }] } });
  });

  it("ends a session together with its run, if there is one", async () => {
    const { post } = await serveScript(waiting);
    const response = await post("/run", { ...asking, sessionId: "s1", projectId: "p1" }, ndjson);
    const kill = async (body: unknown) => (await post("/kill", body)).json();
    const nothing = (where: string) => ({
      ok: true,
      ended: false,
      message: expect.stringContaining(`There is no session "s1" ${where}: send the projectId of its runs`),
    });
    expect(await kill({ sessionId: "s1", projectId: "other" })).toEqual(nothing('of the project "other"'));
    expect(await kill({ sessionId: "s1" })).toEqual(nothing("without a project"));
    expect(await kill({ sessionId: "s1", projectId: "p1" })).toEqual({ ok: true, ended: true });
    expect((await recordsOf(response)).at(-1)).toMatchObject({ result: { stopReason: "cancelled" } });
    expect(await kill({ sessionId: "s1", projectId: "p1" })).toEqual(nothing('of the project "p1"'));
  });

  it("ends a session by the project of its run's context", async () => {
    const { post } = await serveScript(waiting);
    const runContext = { project: { id: "p1" } };
    const response = await post("/run", { ...asking, sessionId: "s1", runContext }, ndjson);
    const killed = await post("/kill", { sessionId: "s1", projectId: "p1" });
    expect(await killed.json()).toEqual({ ok: true, ended: true });
    expect((await recordsOf(response)).at(-1)).toMatchObject({ result: { stopReason: "cancelled" } });
  });

  it("ignores the configured keys, with a warning on the result and the plan", async () => {
    const configuration = { contract: { ignoredKeys: ["uiHints"] } };
    const { post } = await serveScript(saying("x"), { configuration });
    const warnings = [{ path: "uiHints", message: expect.stringContaining("it has no effect") }];
    const body = { ...asking, uiHints: { tier: 2 } };
    expect(await (await post("/run", body)).json()).toMatchObject({ ok: true, warnings });
    expect(await (await post("/plan", body)).json()).toMatchObject({ ok: true, warnings });
    expect(await (await post("/run", asking)).json()).not.toHaveProperty("warnings");
    expect((await post("/run", { ...body, other: 1 })).status).toBe(400);
  });

  it("lets running runs end with their result when the server closes, and starts no others", async () => {
    const { post, server, url } = await serveScript(waiting, { configuration: { server: { drainMs: 1 } } });
    const response = await post("/run", asking, ndjson);
    const reader = response.body?.getReader();
    await reader?.read();
    const closing = server.close();
    let text = "";
    for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) {
      text += new TextDecoder().decode(next.value);
    }
    expect(JSON.parse(text.trim().split("\n").at(-1) ?? "")).toMatchObject({
      kind: "result",
      result: { ok: false, failure: { code: "run_cancelled", retryable: true } },
    });
    await closing;
    await expect(fetch(`${url}/health`)).rejects.toThrow();
  });
});
