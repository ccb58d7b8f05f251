import { describe, expect, it } from "vitest";
import { decide, TurnCancellation } from "../../src/http/cancel-turn.js";
import { waiting } from "../support/scripted-agent.js";
import { asking, recordsOf, serveScript } from "../support/server.js";

const ndjson = { accept: "application/x-ndjson" };
const turn = { turnId: "turn-1", begunAt: Date.parse("2026-01-01T00:00:10Z") };

describe("what a command stops", () => {
  it.each([
    ["the turn that it names", { target: { turnId: "turn-1" } }, "stop"],
    ["it by another key", { target: { expectedTurnId: "turn-1" } }, "stop"],
    ["it, although the clock says it is older", { target: { turnId: "turn-1" }, createdAt: 1 }, "stop"],
    ["no other one", { target: { turnId: "turn-0" } }, "superseded_by_newer_turn"],
    ["the one that ran then", { createdAt: "2026-01-01T00:00:20Z" }, "stop"],
    ["no later one", { createdAt: "2026-01-01T00:00:00Z" }, "superseded_by_newer_turn"],
    ["whatever runs", { target: null }, "stop"],
  ] as const)("%s", (_what, command, expected) => {
    expect(decide(turn, { id: "c", sessionId: "s", kind: "cancel", ...command })).toBe(expected);
  });
});

it("forgets the responses of a project that sends many commands, and no other project's", async () => {
  const asked: string[] = [];
  const cancellation = new TurnCancellation({
    hasSession: () => true,
    runIn: (_session, project) => {
      asked.push(String(project));
      return undefined;
    },
    cancel: () => true,
  });
  const send = (project: string, id: string) =>
    cancellation.answer({ id, sessionId: "s", kind: "cancel" }, project);
  await send("quiet", "c");
  for (let index = 0; index <= 4_000; index += 1) await send("busy", String(index));
  asked.length = 0;
  for (const project of ["quiet", "busy"]) await send(project, project === "quiet" ? "c" : "0");
  expect(asked).toEqual(["busy"]);
});

describe("POST /cancel", () => {
  it("stops a session's turn and keeps the session; a repeated command gets the same response", async () => {
    const { post } = await serveScript(waiting);
    const session = { sessionId: "s1", projectId: "p1" };
    const running = await post("/run", { ...asking, ...session, turnId: "turn-1" }, ndjson);
    const command = { id: "c1", ...session, kind: "cancel", target: { turnId: "turn-1" }, newer: 1 };
    const applied = { ok: true, result: "applied", execution: { id: "turn-1", state: "stopped" } };
    expect(await (await post("/cancel", command)).json()).toEqual(applied);
    expect((await recordsOf(running)).at(-1)).toMatchObject({ result: { stopReason: "cancelled" } });
    expect(await (await post("/cancel", command)).json()).toEqual(applied);
    // The agent didn't end its turn in time and is gone, but its session is kept.
    const later = await post("/cancel", { ...command, id: "c2" });
    expect(await later.json()).toEqual({
      ok: true,
      result: "obsolete",
      execution: { id: "turn-1", state: "not_running" },
    });
  });

  it("stops no turn but the one that it names", async () => {
    const { post } = await serveScript(waiting);
    const running = await post("/run", { ...asking, sessionId: "s1", turnId: "turn-2" }, ndjson);
    const command = { id: "c1", sessionId: "s1", target: { turnId: "turn-1" } };
    expect(await (await post("/cancel", command)).json()).toMatchObject({
      result: "obsolete",
      execution: { id: "turn-2", state: "superseded_by_newer_turn" },
    });
    await post("/kill", { sessionId: "s1" });
    await running.text();
  });

  it.each([
    [{ id: "c1", sessionId: "none" }, 404],
    [{ id: "c1" }, 400],
    [{ id: "c1", sessionId: "s", createdAt: "yesterday" }, 400],
  ])("%j is refused with %i", async (command, status) => {
    const { post } = await serveScript(waiting);
    expect((await post("/cancel", command)).status).toBe(status);
  });
});
