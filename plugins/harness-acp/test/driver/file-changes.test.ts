import { describe, expect, it } from "vitest";
import { changesIn, locationsIn } from "../../src/driver/calls.js";
import { endTurn } from "../support/fake-agent.js";
import { eventsFor } from "../support/fake-turns.js";
import { ofType, turnOf } from "../support/runs.js";

const diff = (path: string, oldText: string | null | undefined, newText: unknown) => ({
  type: "diff",
  path,
  newText,
  oldText,
});

describe("changes", () => {
  it.each([
    ["an edit", [diff("/a", "one", "two")], [{ path: "/a", oldText: "one", newText: "two" }]],
    [
      "a new file",
      [diff("/a", null, "two"), diff("/b", undefined, "")],
      [
        { path: "/a", newText: "two" },
        { path: "/b", newText: "" },
      ],
    ],
    [
      "a text beside it",
      [{ type: "content", content: {} }, diff("/a", "1", "")],
      [{ path: "/a", oldText: "1", newText: "" }],
    ],
    ["nonsense", [null, 7, diff("", "a", "b"), diff("/a", "a", 7), diff("p".repeat(5_000), "", "")], []],
    ["a long text", [diff("/a", "x".repeat(40_000), "y".repeat(30_000))], [{ path: "/a", omitted: 70_000 }]],
  ])("%s", (_what, content, changes) => {
    expect(changesIn(content)).toEqual(changes);
  });

  it("have a limit together, and so have locations", () => {
    const changes = changesIn(Array.from({ length: 100 }, (_, at) => diff(`/${at}`, "", "x".repeat(60_000))));
    expect(changes).toHaveLength(64);
    expect(changes.filter(({ omitted }) => omitted === undefined)).toHaveLength(4);
    expect(locationsIn(Array.from({ length: 1_000 }, () => ({ path: "/a" })))).toHaveLength(256);
    expect(locationsIn([{ path: "/a", line: 2 }, { path: "/b", line: "x" }, {}, null])).toEqual([
      { path: "/a", line: 2 },
      { path: "/b" },
    ]);
    expect(locationsIn("no list")).toEqual([]);
  });
});

describe("a call that edits", () => {
  const call = {
    sessionUpdate: "tool_call",
    toolCallId: "c",
    title: "edit",
    kind: "edit",
    rawInput: { a: 1 },
  };
  const change = { path: "/w/a", oldText: "1", newText: "2" };
  const update = { sessionUpdate: "tool_call_update", toolCallId: "c" };

  it("asks with its changes, and reports them with its result, also if the diff came earlier", async () => {
    const turn = turnOf();
    const { events } = await eventsFor(async ({ update: send, ask }) => {
      await send({ ...call, status: "pending", locations: [{ path: "/w/a" }] });
      await ask({
        toolCall: { toolCallId: "c", content: [diff("/w/a", "1", "2")] },
        options: [{ optionId: "o", name: "Yes", kind: "allow_once" }],
      });
      const content = [{ type: "content", content: { type: "text", text: "edited" } }];
      await send({ ...update, status: "completed", content, locations: [{ path: "/w/a", line: 4 }] });
      return endTurn;
    }, turn);
    expect(turn.questions).toMatchObject([{ changes: [change], locations: [{ path: "/w/a" }] }]);
    expect(events.slice(0, 2)).toEqual([
      { type: "tool_call", id: "c", name: "write", input: { a: 1 }, locations: [{ path: "/w/a" }] },
      {
        type: "tool_result",
        id: "c",
        output: "edited",
        changes: [change],
        locations: [{ path: "/w/a", line: 4 }],
      },
    ]);
  });

  it("has changed nothing if it failed", async () => {
    const { events } = await eventsFor(async ({ update: send }) => {
      await send({ ...call, status: "in_progress", content: [diff("/w/a", "1", "2")] });
      await send({ ...update, status: "failed" });
      return endTurn;
    });
    const [result] = ofType(events, "tool_result");
    expect(result).toMatchObject({ isError: true });
    expect(result?.changes).toBeUndefined();
  });

  it("prints while it runs, and its result has the whole output", async () => {
    const printing = (data: string, more: object = {}) => ({
      ...update,
      _meta: { terminal_output: { terminal_id: "c", data } },
      ...more,
    });
    const { events } = await eventsFor(async ({ update: send }) => {
      await send({ ...call, title: "make", kind: "execute", status: "pending" });
      await send(printing("one\n"));
      await send(printing("two\n", { status: "in_progress" }));
      await send(printing("three\n", { status: "completed" }));
      return endTurn;
    });
    expect(events.slice(1, 4)).toEqual([
      { type: "tool_output", id: "c", delta: "one\n" },
      { type: "tool_output", id: "c", delta: "two\n" },
      { type: "tool_result", id: "c", output: "one\ntwo\nthree\n" },
    ]);
  });
});
