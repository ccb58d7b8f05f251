import { describe, expect, it, vi } from "vitest";
import { AmbitClient } from "../src/client.js";
import { Conversation, continuedRunId, eventStream, messageIdOf } from "../src/conversation.js";

describe("the runs of one message", () => {
  it.each([
    ["r", "r", "r.turn-2"],
    ["r.turn-2", "r", "r.turn-3"],
    ["a.turn-2.turn-9", "a.turn-2", "a.turn-2.turn-10"],
    // More than a caller's own id may make a door read.
    ["r.turn-1000", "r.turn-1000", "r.turn-1000.turn-2"],
  ])("%s belongs to the message %s, which %s continues", (runId, messageId, next) => {
    expect(messageIdOf(runId)).toBe(messageId);
    expect(continuedRunId(runId)).toBe(next);
  });
});

async function* of<Value>(values: readonly Value[], end?: Promise<never>) {
  yield* values;
  await end;
}

const decoded = (stream: ReadableStream<Uint8Array>) => new Response(stream).text();

describe("an event stream", () => {
  it("has a frame for each value, with LF", async () => {
    const text = await decoded(eventStream(of([[{ a: 1 }, { b: "\r\n" }], [], [{ c: 2 }]])));
    expect(text).toBe('data: {"a":1}\n\ndata: {"b":"\\r\\n"}\n\ndata: {"c":2}\n\n');
  });

  it("fails with its values, after those that came before", async () => {
    const reader = eventStream(of([[1]], Promise.reject(new Error("cut")))).getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toBe("data: 1\n\n");
    await expect(reader.read()).rejects.toThrow("cut");
  });

  it("has a comment while it is silent, and the value that comes after it", async () => {
    vi.useFakeTimers();
    try {
      const { promise, resolve } = Promise.withResolvers<void>();
      const values = (async function* () {
        await promise;
        yield [1];
      })();
      const reader = eventStream(values, { keepAliveMs: 1_000 }).getReader();
      const silent = reader.read();
      await vi.advanceTimersByTimeAsync(1_000);
      expect(new TextDecoder().decode((await silent).value)).toBe(": \n\n");
      const read = reader.read();
      resolve();
      expect(new TextDecoder().decode((await read).value)).toBe("data: 1\n\n");
    } finally {
      vi.useRealTimers();
    }
  });

  it("asks for no value before it is read, and leaves them when its reader does", async () => {
    const next = vi.fn(async () => ({ done: false as const, value: [1] }));
    const leave = vi.fn(async () => ({ done: true as const, value: undefined }));
    const stream = eventStream({ next, return: leave });
    await Promise.resolve();
    expect(next).not.toHaveBeenCalled();
    await stream.cancel();
    expect(leave).toHaveBeenCalledOnce();
  });
});

/** A server that says what the test wants of each path. */
function conversationWith(answers: Readonly<Record<string, () => Response>>) {
  const seen: { readonly path: string; readonly body: unknown }[] = [];
  const client = new AmbitClient({
    fetch: async (input, init) => {
      const { pathname } = new URL(String(input));
      seen.push({ path: pathname, body: JSON.parse(String(init?.body ?? "null")) });
      return answers[pathname]?.() ?? Response.json({}, { status: 500 });
    },
  });
  return { conversation: new Conversation(client, "chat"), seen };
}

const refusal = (status: number) => () =>
  Response.json({ ok: false, error: "no", failure: { code: "not_found", retryable: false } }, { status });
const newest = (state: string) => () => Response.json({ runId: "r.turn-2", state });
const records = (...lines: readonly object[]) => lines.map((line) => `${JSON.stringify(line)}\n`).join("");
const result = (more: object) => ({ kind: "result", result: { runId: "r", events: [], ...more } });

describe("a conversation", () => {
  it("begins a run in its session that needs no field but those of a page", async () => {
    const { conversation, seen } = conversationWith({
      "/stream": () => new Response(records(result({ ok: true }))),
    });
    const run = conversation.begin({ messages: [{ role: "user", content: "hi" }] }, "r");
    expect((await Array.fromAsync(conversation.records(run))).map(({ kind }) => kind)).toEqual(["result"]);
    expect(seen[0]?.body).toEqual({
      sessionId: "chat",
      runId: "r",
      messages: [{ role: "user", content: "hi" }],
    });
  });

  it("has the records of a run that fails, and fails for one that is refused or cut", async () => {
    const failed = result({ ok: false, error: "no", failure: { code: "internal", retryable: false } });
    const said = { kind: "event", at: "2026-01-01T00:00:00.001Z", event: { type: "message", text: "a" } };
    const body = { value: records(said, failed) };
    const { conversation } = conversationWith({ "/stream": () => new Response(body.value) });
    expect(await Array.fromAsync(conversation.records(conversation.begin({}, "r")))).toMatchObject([
      said,
      { kind: "result", result: { ok: false, runId: "r", error: "no" } },
    ]);
    body.value = records({ kind: "event", event: { type: "message", text: "a" } });
    const cut = conversation.records(conversation.begin({}, "r"));
    expect((await cut.next()).value).toMatchObject({ kind: "event" });
    // It isn't followed again: a client of the door must see it.
    await expect(cut.next()).rejects.toMatchObject({ code: "unreachable" });
    const refused = conversationWith({ "/stream": refusal(409) }).conversation.begin({}, "r");
    await expect(conversation.records(refused).next()).rejects.toMatchObject({ status: 409 });
  });

  it("has a URL for each file that opens by itself, and keeps it closed to a caller that may not read files", async () => {
    const file = (path: string) => ({
      type: "file",
      url: `/runs/r/files/${path}`,
      mediaType: "image/png",
      path,
    });
    const inline = { type: "file", url: "data:image/png;base64,AA", mediaType: "image/png" };
    const events = [file("a.png"), file("b.png"), inline].map((event) => ({ kind: "event", event }));
    const stream = () => new Response(records(...events, result({ ok: true })));
    const files = ["a.png", "b.png"].map((path) => ({ path, size: 1, sha256: "", url: `/signed/${path}` }));
    const urlsWith = async (answer: () => Response) => {
      const { conversation, seen } = conversationWith({ "/stream": stream, "/runs/r/files": answer });
      const all = await Array.fromAsync(conversation.records(conversation.begin({}, "r")));
      expect(seen.map(({ path }) => path)).toEqual(["/stream", "/runs/r/files"]);
      return all.map((record) => record.kind === "event" && "url" in record.event && record.event.url);
    };
    const whole = await urlsWith(() => Response.json({ files }));
    expect(whole).toEqual(["/signed/a.png", "/signed/b.png", inline.url, false]);
    const closed = await urlsWith(refusal(403));
    expect(closed).toEqual(["/runs/r/files/a.png", "/runs/r/files/b.png", inline.url, false]);
  });

  it("answers the open questions of its newest run alone", async () => {
    const { conversation, seen } = conversationWith({
      "/sessions/chat/run": newest("ended"),
      "/runs/r.turn-2/interactions/ask_1": () => Response.json({ ok: true }),
      "/runs/r.turn-2/interactions/ask_2": refusal(404),
      "/runs/r.turn-2/interactions/ask_3": refusal(410),
    });
    const ids = ["ask_1", "ask_2", "ask_3"];
    const answers = new Map(ids.map((id) => [id, { approved: true }]));
    expect(await conversation.answer(answers)).toEqual({ runId: "r.turn-2", accepted: ["ask_1"] });
    expect(seen.at(-1)?.body).toEqual({ approved: true });
    expect(await conversationWith({ "/sessions/chat/run": refusal(404) }).conversation.answer(answers)).toBe(
      undefined,
    );
    const broken = conversationWith({ "/sessions/chat/run": newest("ended") }).conversation;
    await expect(broken.answer(answers)).rejects.toMatchObject({ status: 500 });
  });

  it("is live while its newest run goes on, with the earlier runs of the same message", async () => {
    const running = conversationWith({
      "/sessions/chat/run": newest("running"),
      "/runs/r.turn-2/cancel": () => Response.json({}),
    });
    expect((await running.conversation.live())?.map(({ id }) => id)).toEqual(["r", "r.turn-2"]);
    expect(await running.conversation.stop()).toBe(true);
    const ended = conversationWith({ "/sessions/chat/run": newest("ended") }).conversation;
    expect([await ended.live(), await ended.stop()]).toEqual([undefined, false]);
    const gone = conversationWith({
      "/sessions/chat/run": newest("running"),
      "/runs/r.turn-2/cancel": refusal(404),
    });
    expect(await gone.conversation.stop()).toBe(false);
  });
});
