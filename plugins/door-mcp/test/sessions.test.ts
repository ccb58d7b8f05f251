import { randomUUID } from "node:crypto";
import type { DoorCall } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { configSchema } from "../src/config.js";
import { Sessions } from "../src/sessions.js";

const initialize = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } },
};

/** A caller of the door, by the id that is the same in all its requests. */
function callerOf(sessions: Sessions, callerId: string = randomUUID()) {
  const send = (method: string, id: string | undefined, body?: unknown) => {
    const headers = {
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      ...(id === undefined ? {} : { "mcp-session-id": id }),
    };
    const call: DoorCall = {
      request: new Request("http://localhost/mcp", { method, headers }),
      json: () => Promise.resolve(body),
      path: () => "",
      fetch: () => Promise.reject(new Error("not called")),
      caller: "platform",
      callerId,
    };
    return sessions.serve(call, body);
  };
  return {
    open: async () => (await send("POST", undefined, initialize)).headers.get("mcp-session-id") ?? "",
    ping: async (id: string) => (await send("POST", id, { jsonrpc: "2.0", id: 2, method: "ping" })).status,
    end: async (id: string) => (await send("DELETE", id)).status,
    send,
  };
}

function sessionsAt(nowMs: () => number, maxSessionsPerCaller = 2) {
  return new Sessions(configSchema.parse({ maxSessionsPerCaller, sessionIdleMs: 1_000 }), "1.0.0", nowMs);
}

describe("sessions of the 2025 protocols", () => {
  it("serve the caller that opened them, and no other", async () => {
    const sessions = sessionsAt(() => 0);
    const [ours, theirs] = [callerOf(sessions), callerOf(sessions)];
    const id = await ours.open();
    expect(await theirs.ping(id)).toBe(404);
    expect(await theirs.end(id)).toBe(404);
    expect(await ours.ping(id)).toBe(200);
    expect(await ours.end(id)).toBe(200);
    expect(await ours.ping(id)).toBe(404);
    expect(sessions.size).toBe(0);
  });

  it("begin with initialize", async () => {
    const { send } = callerOf(sessionsAt(() => 0));
    expect((await send("POST", undefined, { jsonrpc: "2.0", id: 1, method: "tools/list" })).status).toBe(400);
    expect((await send("GET", undefined)).status).toBe(400);
  });

  it("end where one caller has too many, the one used least recently first", async () => {
    const sessions = sessionsAt(() => 0);
    const [ours, theirs] = [callerOf(sessions), callerOf(sessions)];
    const other = await theirs.open();
    const [first, second] = [await ours.open(), await ours.open()];
    await ours.ping(first);
    const third = await ours.open();
    expect(await Promise.all([first, second, third].map(ours.ping))).toEqual([200, 404, 200]);
    expect(await theirs.ping(other)).toBe(200);
  });

  it("end after a time without a request", async () => {
    let nowMs = 0;
    const sessions = sessionsAt(() => nowMs, 10);
    const ours = callerOf(sessions);
    const idle = await ours.open();
    nowMs = 600;
    const used = await ours.open();
    nowMs = 1_500;
    await ours.open();
    expect(await Promise.all([idle, used].map(ours.ping))).toEqual([404, 200]);
  });
});
