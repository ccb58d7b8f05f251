import { expect, it } from "vitest";
import { asking, bodyOf } from "../support/server.js";
import { counting, describePlaces } from "../support/stored-server.js";

interface Reader {
  readonly lines: string[];
  /** Stops as soon as there is this much, in the middle of the connection. */
  readonly until: number;
}

/** Reads lines until there are enough, then drops the connection. False when the log ended. */
async function readSome(url: string, { lines, until }: Reader): Promise<boolean> {
  const leave = new AbortController();
  const response = await fetch(`${url}?after=${lines.length}`, { signal: leave.signal });
  if (response.status === 204 || response.body === null) return false;
  let rest = "";
  for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
    const parts = (rest + text).split("\n");
    rest = parts.pop() ?? "";
    for (const line of parts) if (line !== "") lines.push(line);
    if (lines.length >= until) {
      leave.abort();
      return true;
    }
    if (lines.at(-1)?.startsWith('{"kind":"result"')) return false;
  }
  return true;
}

describePlaces("a reader whose connection drops", (serve) => {
  it("a hundred times during a run loses nothing and gets no duplicates", async () => {
    const steps = 300;
    const { script, proceed } = counting(steps);
    const { post, url } = await serve(script);
    const { runId } = await bodyOf<{ runId: string }>(
      await post("/run", { ...asking, sessionId: "laptop" }, { prefer: "respond-async" }),
    );
    const lines: string[] = [];
    let dropped = 0;
    for (let open = true; open; ) {
      proceed(Math.min(3, steps));
      const before = lines.length;
      open = await readSome(`${url}/runs/${runId}/events`, { lines, until: before + 2 });
      if (open) dropped += 1;
    }
    expect(dropped).toBeGreaterThanOrEqual(100);
    const records = lines.map((line) => JSON.parse(line));
    const said = records.flatMap(({ event }) => (event?.type === "message" ? [event.text] : []));
    expect(said).toEqual(Array.from({ length: steps }, (_, index) => `step ${index + 1}`));
    expect(records.filter(({ kind }) => kind === "result")).toHaveLength(1);
    expect(records.at(-1)).toMatchObject({ kind: "result", result: { ok: true } });
  });

  it("that started the run finds it again under its id", async () => {
    const { agent, script, proceed } = counting();
    const { url, get } = await serve(script);
    const leave = new AbortController();
    const response = await fetch(`${url}/stream`, {
      method: "POST",
      body: JSON.stringify({ ...asking, sessionId: "s" }),
      signal: leave.signal,
    });
    const runId = response.headers.get("x-ambit-run-id") ?? "";
    await expect.poll(() => agent.begun).toBe(1);
    leave.abort();
    await response.text().catch(() => "");
    proceed(3);
    const text = await (await get(`/runs/${runId}/events`)).text();
    expect(text).toContain("step 3");
    expect(text.match(/"kind":"result"/g)).toHaveLength(1);
  });

  it("without a session cancels the run, whose result is kept", async () => {
    const { agent, script } = counting();
    const { url, get } = await serve(script);
    const leave = new AbortController();
    const response = await fetch(`${url}/stream`, {
      method: "POST",
      body: JSON.stringify(asking),
      signal: leave.signal,
    });
    const runId = response.headers.get("x-ambit-run-id") ?? "";
    await expect.poll(() => agent.begun).toBe(1);
    leave.abort();
    await expect
      .poll(async () => (await get(`/runs/${runId}`)).json())
      .toMatchObject({
        state: "ended",
        result: { stopReason: "cancelled" },
      });
    expect(agent.aborted).toBe(1);
  });
});
