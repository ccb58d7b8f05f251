import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { AmbitClient } from "../src/client.js";

const opened = '{"kind":"opened","terminalId":"t"}\n';
const ended = '{"kind":"ended","exitCode":3}\n';

/** A server with one terminal, whose output is what the test sends. */
async function terminalWith(answerInput: () => Response = () => Response.json({ ok: true }), first = opened) {
  const inputs: unknown[] = [];
  const output = new TransformStream<string, string>();
  const writer = output.writable.getWriter();
  const client = new AmbitClient({
    fetch: async (input, init) => {
      if (!String(input).endsWith("/terminals")) {
        inputs.push(JSON.parse(String(init?.body)));
        return answerInput();
      }
      init?.signal?.addEventListener("abort", () => void writer.abort(init.signal?.reason).catch(() => {}));
      return new Response(output.readable.pipeThrough(new TextEncoderStream()));
    },
  });
  const print = (text: string) => writer.write(text).catch(() => undefined);
  void print(first);
  const terminal = await client.openTerminal("s");
  const end = async () => {
    const reading = terminal.output();
    for (;;) {
      const { value, done } = await reading.next();
      if (done) return value;
    }
  };
  return { terminal, inputs, print, end: end() };
}

const refusal = (status: number) => () =>
  Response.json(
    { ok: false, error: "Not now.", failure: { code: "at_capacity", retryable: true } },
    { status },
  );

describe("what is typed into a terminal", () => {
  it("leaves after an empty input too, and what comes meanwhile with the next request", async () => {
    const { terminal, inputs } = await terminalWith();
    await terminal.write("");
    await Promise.all([terminal.write("a"), terminal.write("b"), terminal.write("c")]);
    await Promise.all([terminal.write(""), terminal.resize({ columns: 90, rows: 20 })]);
    expect(inputs).toEqual([{ input: "a" }, { input: "bc" }, { columns: 90, rows: 20 }]);
    terminal.close();
  });

  it("is refused with the server's reason, which may be that of the terminal's end", async () => {
    const { terminal, end } = await terminalWith(refusal(429));
    await expect(terminal.write("a")).rejects.toMatchObject({ status: 429, message: "Not now." });
    terminal.close("Not now.");
    terminal.close("later");
    expect(await end).toEqual({ exitCode: null, reason: "Not now." });
  });
});

describe("an input to a terminal that its server doesn't have", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("waits for the end of the output", async () => {
    const { terminal, print, end } = await terminalWith(refusal(404));
    const typed = terminal.write("a");
    await vi.advanceTimersByTimeAsync(1_000);
    await print(ended);
    await typed;
    expect(await end).toMatchObject({ exitCode: 3 });
    expect(vi.getTimerCount()).toBe(0);
  });

  it("closes a terminal whose output lives on, since another replica has it", async () => {
    const { terminal, end } = await terminalWith(refusal(404));
    const typed = terminal.write("a");
    await vi.advanceTimersByTimeAsync(5_000);
    await typed;
    expect(await end).toMatchObject({ exitCode: null, reason: expect.stringMatching("same replica") });
  });
});

it.each([
  ["is no record", "<html>\n", "invalid_response"],
  ["is a record of something else", '{"kind":"result"}\n', "invalid_response"],
  ["is the end", ended, "sandbox_failed"],
])("doesn't open where the first line %s", async (_what, line, code) => {
  await expect(terminalWith(undefined, line)).rejects.toMatchObject({ name: "AmbitError", code });
});

it("doesn't open where its connection is cut, or its user leaves, before it has", async () => {
  const cut = (leave?: AbortController) =>
    new AmbitClient({
      fetch: async () =>
        new Response(
          new ReadableStream({
            pull: (controller) => {
              leave?.abort("gone");
              controller.error(new TypeError("terminated"));
            },
          }),
        ),
    });
  await expect(cut().openTerminal("s")).rejects.toMatchObject({ name: "AmbitError", code: "unreachable" });
  const leave = new AbortController();
  await expect(cut(leave).openTerminal("s", { signal: leave.signal })).rejects.toBe("gone");
});
