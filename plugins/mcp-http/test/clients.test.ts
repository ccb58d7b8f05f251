import { describe, expect, it } from "vitest";
import { legacyClient, modernClient, rawClient } from "./clients.js";
import { echo, publish, weirdSchema } from "./publications.js";

describe.each([
  ["the current SDK's client", modernClient, "2026-07-28"],
  ["the former SDK's client", legacyClient, "2025-11-25"],
  ["plain fetch", rawClient, "2025-06-18"],
])("%s", (_who, connect, protocol) => {
  it("is served in its own generation of the protocol", async () => {
    expect((await connect(await publish())).protocol).toBe(protocol);
  });

  it("gets the tools with their schemas unchanged, which the endpoint reports as listed", async () => {
    const published = await publish();
    const client = await connect(published);
    // Some clients list on their own when they connect; plain fetch doesn't.
    if (connect === rawClient) expect(published.listed()).toBe(false);
    const meta = { "anthropic/alwaysLoad": true };
    const [weather, table, bare] = await client.listTools();
    expect(published.listed()).toBe(true);
    expect(weather).toEqual({
      name: "weather",
      description: "The weather",
      inputSchema: weirdSchema,
      annotations: { readOnlyHint: true },
      _meta: meta,
    });
    expect(table).toMatchObject({ name: "book.table-2", annotations: { readOnlyHint: false }, _meta: meta });
    expect(bare).toEqual({
      name: "bare",
      inputSchema: { type: "object", properties: { a: {} } },
      _meta: meta,
    });
  });

  it("gets a call's output, and the failure of a tool as a result", async () => {
    const client = await connect(
      await publish((call) =>
        call.name === "bare" ? Promise.resolve({ output: "no", isError: true }) : echo(call),
      ),
    );
    expect(await client.call("weather", { city: "Bern" })).toEqual({
      text: 'weather {"city":"Bern"}',
      isError: false,
    });
    expect(await client.call("bare")).toEqual({ text: "no", isError: true });
  });

  it("gets a clear error for an unknown tool", async () => {
    const published = await publish();
    const client = await connect(published);
    await expect(client.call("wheather")).rejects.toThrow(
      "There is no tool 'wheather'. Offered: weather, book.table-2, bare.",
    );
    expect(published.calls).toHaveLength(0);
  });

  it.each([
    [{ "claudecode/toolUseId": "toolu_1" }, "toolu_1"],
    [{ callId: "call_1" }, "call_1"],
    [{ callId: 7 }, undefined],
    [{ callId: "" }, undefined],
    [{}, undefined],
  ])("names its call by _meta %j", async (meta, id) => {
    const published = await publish();
    await (await connect(published)).call("bare", {}, {}, meta);
    expect(published.calls.map((call) => call.id)).toEqual([id]);
  });

  it("runs calls in parallel, each with its own response, in any order", async () => {
    const waiting = new Map<unknown, () => void>();
    const all = Promise.withResolvers<void>();
    const client = await connect(
      await publish(async (call) => {
        await new Promise<void>((resolve) => {
          waiting.set(call.arguments.n, resolve);
          if (waiting.size === 20) all.resolve();
        });
        return echo(call);
      }),
    );
    const outcomes = Promise.all(Array.from({ length: 20 }, (_, n) => client.call("bare", { n })));
    // Only when all twenty have begun does the first end, and the last one first.
    await all.promise;
    for (const release of [...waiting.values()].reverse()) release();
    expect((await outcomes).map(({ text }) => text)).toEqual(
      Array.from({ length: 20 }, (_, n) => `bare {"n":${n}}`),
    );
  });

  it("ends a call that it cancels", async () => {
    const begun = Promise.withResolvers<AbortSignal>();
    const client = await connect(
      await publish(async ({ signal }) => {
        begun.resolve(signal);
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        return { output: "too late", isError: true };
      }),
    );
    const giveUp = new AbortController();
    const call = client.call("bare", {}, { signal: giveUp.signal });
    const signal = await begun.promise;
    expect(signal.aborted).toBe(false);
    giveUp.abort();
    await expect(call).rejects.toThrow();
    if (!signal.aborted)
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    expect(signal.aborted).toBe(true);
  });
});

describe("progress of a long call", () => {
  it.each([
    ["the current SDK's client", modernClient],
    ["the former SDK's client", legacyClient],
  ])("reaches %s if it asked for it", async (_who, connect) => {
    const received = Promise.withResolvers<void>();
    const beats: number[] = [];
    const client = await connect(
      await publish(
        async (call) => {
          await received.promise;
          return echo(call);
        },
        { config: { heartbeatMs: 20 } },
      ),
    );
    const outcome = await client.call(
      "bare",
      {},
      {
        onprogress: ({ progress }) => {
          beats.push(progress);
          if (beats.length === 3) received.resolve();
        },
      },
    );
    expect(outcome.isError).toBe(false);
    expect(beats.slice(0, 3)).toEqual([1, 2, 3]);
  });
});
