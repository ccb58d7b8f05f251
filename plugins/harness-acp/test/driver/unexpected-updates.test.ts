import { describe, expect, it } from "vitest";
import { chunk, endTurn } from "../support/fake-agent.js";
import { eventsFor } from "../support/fake-turns.js";
import { textOf } from "../support/runs.js";

describe("unexpected updates", () => {
  it("passes on unknown updates unchanged, and known ones as events", async () => {
    const { events, logged } = await eventsFor(async (turn) => {
      await turn.update({ sessionUpdate: "telepathy", content: { type: "text", text: "?" } });
      await turn.update({ sessionUpdate: "agent_message_chunk", content: { type: "hologram" } });
      await turn.update({ sessionUpdate: "agent_message_chunk" });
      await turn.update({ sessionUpdate: "tool_call", title: "no id" });
      await turn.update({ ...chunk("heard"), novelty: true });
      return { ...endTurn, novelty: true };
    });
    expect(textOf(events)).toBe("heard");
    expect(events[0]).toEqual({
      type: "data",
      name: "acp.telepathy",
      data: { sessionUpdate: "telepathy", content: { type: "text", text: "?" } },
      transient: true,
    });
    expect(logged).toContainEqual(expect.objectContaining({ level: "debug", fields: { kind: "telepathy" } }));
  });

  it("ignores a long line of control sequences without an end, in time with its length", async () => {
    const { events } = await eventsFor(async (turn) => {
      await turn.line("\u001b]".repeat(1_000_000));
      await turn.update(chunk("heard"));
      return endTurn;
    });
    expect(textOf(events)).toBe("heard");
  });

  it("ignores lines that aren't messages", async () => {
    const { events } = await eventsFor(async (turn) => {
      for (const line of [
        "npm notice",
        "{",
        "[]",
        "null",
        "42",
        '{"jsonrpc":"2.0"}',
        '{"jsonrpc":"1.0","id":1}',
        'Loading {"jsonrpc":',
      ]) {
        await turn.line(line);
      }
      await turn.update(chunk("heard"));
      return endTurn;
    });
    expect(textOf(events)).toBe("heard");
  });

  it("reads a message that follows a log text on one line, whatever the text is", async () => {
    const { events, logged } = await eventsFor(async (turn) => {
      const message = (text: string) =>
        JSON.stringify({
          jsonrpc: "2.0",
          method: "session/update",
          params: { sessionId: turn.sessionId, update: chunk(text) },
        });
      await turn.line(`Loading… ${message("one ")}`);
      await turn.line(`{"level":"info"} ${message("two ")}`);
      await turn.line(`{info} ${message("three ")}`);
      await turn.line(`Long: ${message(`four ${"x".repeat(100_000)}`)}`);
      await turn.line(message('{"jsonrpc":"2.0"}'));
      return endTurn;
    });
    expect(textOf(events).replace(/x+/, "")).toBe('one two three four {"jsonrpc":"2.0"}');
    const noise = logged
      .filter(({ message }) => message.startsWith("no ACP"))
      .map(({ fields }) => fields.line);
    expect(noise).toEqual(["Loading…", '{"level":"info"}', "{info}", "Long:"]);
  });

  it("passes on images as files, and plans as data", async () => {
    const entries = [{ content: "look", status: "pending", priority: "low" }];
    const { events } = await eventsFor(async (turn) => {
      await turn.update({ sessionUpdate: "plan", entries });
      const content = { type: "image", data: "AAAA", mimeType: "image/png" };
      await turn.update({ sessionUpdate: "agent_message_chunk", content });
      return endTurn;
    });
    expect(events.slice(0, 2)).toEqual([
      { type: "data", name: "plan", data: { entries } },
      { type: "file", url: "data:image/png;base64,AAAA", mediaType: "image/png" },
    ]);
  });
});
