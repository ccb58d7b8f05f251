import { describe, expect, it } from "vitest";
import type { Script } from "../support/scripted-agent.js";
import { asking, serveScript } from "../support/server.js";

/** An agent that continues when the test says so, and reports how its turn ended. */
function patient() {
  const turn = { begun: 0, ended: "running", proceed: () => {} };
  const script: Script = async function* ({ signal }) {
    turn.begun += 1;
    yield { type: "message", text: "begun" };
    const proceeding = new Promise<void>((resolve) => {
      turn.proceed = resolve;
    });
    await Promise.race([
      proceeding,
      new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true })),
    ]);
    turn.ended = signal.aborted ? "aborted" : "whole";
    yield { type: "done", stopReason: "end_turn" };
  };
  return { turn, script };
}

/** Posts, waits until the agent works, and leaves. */
async function leaving(url: string, turn: { readonly begun: number }, body: object, accept: string) {
  const leave = new AbortController();
  const answer = fetch(`${url}/run`, {
    method: "POST",
    body: JSON.stringify({ ...asking, ...body }),
    headers: { accept },
    signal: leave.signal,
  }).then(
    (response) => response.text(),
    () => "left",
  );
  await expect.poll(() => turn.begun).toBe(1);
  leave.abort();
  expect(await answer.catch(() => "left")).toBe("left");
}

describe.each(["application/json", "application/x-ndjson", "text/event-stream"])(
  "a caller of %s",
  (accept) => {
    it("that leaves a session's run doesn't end it, and its slot is freed at the end", async () => {
      const { turn, script } = patient();
      const { url, post } = await serveScript(script, { configuration: { limits: { concurrentRuns: 1 } } });
      await leaving(url, turn, { sessionId: "s" }, accept);
      expect((await post("/run", asking)).status).toBe(429);
      turn.proceed();
      await expect.poll(() => turn.ended).toBe("whole");
      await expect
        .poll(async () => (await post("/kill", { sessionId: "s" })).json())
        .toEqual({ ok: true, ended: true });
    });

    it("that leaves a run without a session cancels it", async () => {
      const { turn, script } = patient();
      const { url } = await serveScript(script);
      await leaving(url, turn, {}, accept);
      await expect.poll(() => turn.ended).toBe("aborted");
    });

    it("that leaves can still have the run ended", async () => {
      const { turn, script } = patient();
      const { url, post } = await serveScript(script);
      await leaving(url, turn, { sessionId: "s", projectId: "p" }, accept);
      expect(await (await post("/kill", { sessionId: "s", projectId: "p" })).json()).toEqual({
        ok: true,
        ended: true,
      });
      expect(turn.ended).toBe("aborted");
    });
  },
);
