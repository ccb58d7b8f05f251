import { describe, expect, it } from "vitest";
import type { Script } from "../../support/scripted-agent.js";
import { bodyOf, recordsOf } from "../../support/server.js";
import { databaseFile, describePlaces, serveStored } from "../../support/stored-server.js";

interface Info {
  readonly state: string;
  readonly result?: { readonly stopReason: string };
}

/** An agent that says its prompt, and ends its turn when the test lets it, or it is cancelled. */
function echoing() {
  const begun: string[] = [];
  const proceed = new Map<string, () => void>();
  const script: Script = async function* ({ prompt, signal }) {
    const text = prompt.map((block) => (block.type === "text" ? block.text : "")).join("");
    begun.push(text);
    yield { type: "message", text };
    await new Promise<void>((resolve) => {
      proceed.set(text, resolve);
      signal.addEventListener("abort", () => resolve(), { once: true });
      if (signal.aborted) resolve();
    });
    yield { type: "done", stopReason: signal.aborted ? "cancelled" : "end_turn" };
  };
  const end = async (text: string) => {
    await expect.poll(() => proceed.has(text)).toBe(true);
    proceed.get(text)?.();
  };
  return { begun, script, end };
}

const message = (runId: string, more: object = {}) => ({
  runId,
  sessionId: "s",
  messages: [{ role: "user", content: runId }],
  ...more,
});
const queue = { whenBusy: "queue" };
const interrupt = { whenBusy: "interrupt" };

describePlaces("a message for a busy session", (serve) => {
  it("is refused, waits its turn, or interrupts, as it says", async () => {
    const { begun, script, end } = echoing();
    const { post, get } = await serve(script);
    const stateOf = async (runId: string) => (await bodyOf<Info>(await get(`/runs/${runId}`))).state;
    const resultOf = async (response: Promise<Response>) => (await recordsOf(await response)).at(-1);
    const first = post("/stream", message("first"));
    await expect.poll(() => begun).toEqual(["first"]);
    expect(await (await post("/run", message("refused"))).json()).toMatchObject({
      failure: { code: "session_in_use" },
    });

    const second = post("/stream", message("second", queue));
    await expect.poll(() => stateOf("second")).toBe("queued");
    const third = post("/run", message("third", queue));
    await expect.poll(() => stateOf("third")).toBe("queued");
    const fourth = post("/stream", message("fourth", queue));
    await expect.poll(() => stateOf("fourth")).toBe("queued");
    const detached = await post("/run", message("fifth", { ...queue, detach: true }));
    expect(await detached.json()).toMatchObject({ ok: true, runId: "fifth", state: "queued" });
    // It has a session of its own.
    const other = post("/stream", message("other", { ...queue, sessionId: "t" }));
    await end("other");
    expect(await resultOf(other)).toMatchObject({ result: { output: "other" } });

    expect((await post("/runs/fourth/cancel", {})).status).toBe(200);
    expect(await resultOf(fourth)).toMatchObject({ result: { ok: true, stopReason: "cancelled" } });
    await end("first");
    expect(await resultOf(first)).toMatchObject({ result: { output: "first", stopReason: "end_turn" } });
    await end("second");
    const records = await recordsOf(await second);
    expect(records[0]).toMatchObject({ kind: "event", event: { type: "data", name: "run" } });
    expect(records.at(-1)).toMatchObject({ result: { ok: true, runId: "second", output: "second" } });
    await end("third");
    // With its events, as if it had begun at once.
    expect(await (await third).json()).toMatchObject({
      output: "third",
      events: expect.arrayContaining([expect.objectContaining({ type: "message", text: "third" })]),
    });
    await expect.poll(() => begun.at(-1)).toBe("fifth");

    const sixth = post("/stream", message("sixth", queue));
    await expect.poll(() => stateOf("sixth")).toBe("queued");
    const seventh = post("/stream", message("seventh", interrupt));
    // Both before it are over, and the one that waited has not begun.
    expect(await resultOf(sixth)).toMatchObject({ result: { stopReason: "cancelled" } });
    await expect.poll(() => stateOf("fifth")).toBe("ended");
    expect(await (await get("/runs/fifth")).json()).toMatchObject({
      result: { ok: true, output: "fifth", stopReason: "cancelled" },
    });
    await end("seventh");
    expect(await resultOf(seventh)).toMatchObject({ result: { output: "seventh", stopReason: "end_turn" } });
    expect(begun).toEqual(["first", "other", "second", "third", "fifth", "seventh"]);
  });
});

describePlaces("a session that its user ends", (serve) => {
  it.each([
    ["DELETE", "/sessions/s", undefined],
    ["POST", "/kill", { sessionId: "s" }],
  ])("takes the messages with it that wait for it: %s %s", async (method, path, body) => {
    const { begun, script, end } = echoing();
    const { url, post, get } = await serve(script);
    const first = post("/stream", message("first"));
    await expect.poll(() => begun).toEqual(["first"]);
    const stateOf = async (runId: string) => (await bodyOf<Info>(await get(`/runs/${runId}`))).state;
    const waiting = ["second", "third"].map((runId) => post("/stream", message(runId, queue)));
    await expect.poll(() => Promise.all(["second", "third"].map(stateOf))).toEqual(["queued", "queued"]);
    const other = post("/run", message("other", { sessionId: "t" }));
    await expect.poll(() => begun).toContain("other");
    const others = post("/run", message("others", { ...queue, sessionId: "t" }));
    await expect.poll(() => stateOf("others")).toBe("queued");

    const ended = await fetch(`${url}${path}`, {
      method,
      body: body === undefined ? null : JSON.stringify(body),
    });
    expect([ended.status, await ended.json()]).toEqual([200, { ok: true, ended: true }]);
    for (const response of [first, ...waiting])
      expect((await recordsOf(await response)).at(-1)).toMatchObject({ result: { stopReason: "cancelled" } });
    // Those of another session go on.
    await end("other");
    await other;
    await end("others");
    expect(await (await others).json()).toMatchObject({ output: "others", stopReason: "end_turn" });
    expect(begun).toEqual(["first", "other", "others"]);
  });
});

describe("a message that waits for its session", () => {
  it("waits in one queue with that of another replica, and begins where the session is", async () => {
    const file = await databaseFile();
    const { begun, script, end } = echoing();
    const [one, two] = [await serveStored(script, { file }), await serveStored(script, { file })];
    const first = one.post("/stream", message("first"));
    await expect.poll(() => begun).toEqual(["first"]);
    const second = two.post("/stream", message("second", queue));
    await expect.poll(async () => (await bodyOf<Info>(await one.get("/runs/second"))).state).toBe("queued");
    const third = two.post("/stream", message("third", interrupt));
    for (const response of [first, second])
      expect((await recordsOf(await response)).at(-1)).toMatchObject({ result: { stopReason: "cancelled" } });
    await end("third");
    expect((await recordsOf(await third)).at(-1)).toMatchObject({ result: { output: "third" } });
    expect(begun).toEqual(["first", "third"]);
  });

  it("is cancelled with its caller, where it says so, and keeps its place otherwise", async () => {
    const { begun, script, end } = echoing();
    const { url, post, get } = await serveStored(script);
    const first = post("/stream", message("first"));
    await expect.poll(() => begun).toEqual(["first"]);
    const stateOf = async (runId: string) => (await bodyOf<Info>(await get(`/runs/${runId}`))).state;
    for (const [runId, onDisconnect] of [
      ["leaves", "cancel"],
      ["stays", "continue"],
    ] as const) {
      const left = new AbortController();
      const body = JSON.stringify(message(runId, { ...queue, onDisconnect }));
      await fetch(`${url}/stream`, { method: "POST", body, signal: left.signal });
      await expect.poll(() => stateOf(runId)).toBe("queued");
      left.abort();
    }
    await expect.poll(() => stateOf("leaves")).toBe("ended");
    await end("first");
    await first;
    await end("stays");
    await expect.poll(() => stateOf("stays")).toBe("ended");
    expect(begun).toEqual(["first", "stays"]);
  });
});
