import { calls } from "@ambit/fakes/harness";
import { recordingLog } from "@ambit/fakes/log";
import { afterEach, describe, expect, test } from "vitest";
import { ArgumentsChecker, ToolArguments } from "../../../src/call/arguments/checker.js";
import { createWorld, eventsOf } from "../../fakes/world.js";

const open: ArgumentsChecker[] = [];
function checker(milliseconds: number): ArgumentsChecker {
  const made = new ArgumentsChecker(milliseconds, recordingLog());
  open.push(made);
  return made;
}
afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});

const never = new AbortController().signal;
const spec = (inputSchema: Record<string, unknown>, name = "tool") => ({
  name,
  kind: "callback",
  inputSchema,
});
const easy = spec({ type: "object", required: ["a"] });
/** Takes V8 longer than anybody waits; a backreference keeps it from the linear engine. */
const endless = spec({ type: "object", properties: { a: { pattern: "^((a+)+)\\1?$" } } });
const endlessInput = { a: `${"a".repeat(60)}!` };
const pairs = spec({ type: "object", properties: { a: { type: "array", uniqueItems: true } } });
/** 0.95 MB; each pair is compared. */
const pairsInput = { a: Array.from({ length: 60_000 }, (_, index) => [index]) };

describe("arguments that take long to check", () => {
  test.each([
    ["a pattern that backtracks", endless, endlessInput],
    ["items that are compared in pairs", pairs, pairsInput],
  ])("%s: the event loop goes on, and the model is told", async (_what, tool, given) => {
    let turns = 0;
    const turning = setInterval(() => {
      turns += 1;
    }, 1);
    const recorded = await new ToolArguments(checker(300)).problem(tool, given, never);
    clearInterval(turning);
    expect(recorded).toMatch(
      /^Tool 'tool' wasn't called: checking these arguments .* took longer than 300 ms/,
    );
    // In the event loop itself not one turn would have come.
    expect(turns).toBeGreaterThan(10);
  });

  test("checks of another run don't wait for them, but those of the same run do", async () => {
    const shared = checker(1_500);
    const order: string[] = [];
    const hostile = new ToolArguments(shared);
    await Promise.all([
      hostile.problem(endless, endlessInput, never).then(() => order.push("endless")),
      hostile.problem(easy, { a: 1 }, never).then(() => order.push("behind it")),
      new ToolArguments(shared).problem(easy, { a: 1 }, never).then(() => order.push("neighbour")),
    ]);
    expect(order).toEqual(["neighbour", "endless", "behind it"]);
  });

  test("after three of them a run gets no more checks, but another run does", async () => {
    const shared = checker(300);
    const hostile = new ToolArguments(shared);
    for (let round = 0; round < 3; round += 1) {
      expect(await hostile.problem(endless, endlessInput, never)).toContain("longer than 300 ms");
    }
    expect(await hostile.problem(easy, { a: 1 }, never)).toContain("took too long 3 times in this run");
    expect(await new ToolArguments(shared).problem(endless, { a: "aa" }, never)).toBeUndefined();
  });

  test("a schema that needs too much memory ends only its worker", async () => {
    const shared = checker(120_000);
    const branches = Array.from({ length: 2_000 }, (_, index) => ({ const: index }));
    const greedy = spec({ type: "object", properties: { a: { items: { anyOf: branches } } } });
    const given = { a: Array.from({ length: 100_000 }, () => "x") };
    expect(await new ToolArguments(shared).problem(greedy, given, never)).toContain("took too much memory");
    expect(await new ToolArguments(shared).problem(easy, {}, never)).toContain("missing required");
  }, 120_000);

  test("an aborted check doesn't wait for a slot", async () => {
    const shared = checker(300);
    const hostile = new ToolArguments(shared);
    const first = hostile.problem(endless, endlessInput, never);
    const given = new AbortController();
    const second = hostile.problem(easy, { a: 1 }, given.signal);
    given.abort();
    expect(await second).toContain("the call was given up");
    expect(await first).toContain("longer than");
  });
});

describe("sizes", () => {
  test("a schema beyond its limit", async () => {
    const large = spec({ type: "object", description: "x".repeat(262_144) });
    expect(await new ToolArguments(checker(1_000)).problem(large, {}, never)).toContain(
      "its inputSchema has more than 262,144 characters",
    );
  });

  test("arguments beyond theirs", async () => {
    expect(
      await new ToolArguments(checker(1_000)).problem(easy, { a: "x".repeat(4_194_304) }, never),
    ).toContain("more than 4,194,304 characters");
  });

  test("arguments that are nested too deep affect neither the run nor its actors' evidence", async () => {
    const a: unknown = JSON.parse(`${"[".repeat(5_000)}${"]".repeat(5_000)}`);
    const customTools = [{ name: "send", permission: "allow", callRef: "ref" }];
    const world = await createWorld({ script: calls("send", {}, {}) });
    world.harness.scripts = [
      async function* ({ tools }) {
        yield { type: "message", text: (await tools().call("send", { a })).output };
        yield { type: "done", stopReason: "end_turn" };
      },
    ];
    const recorded = await world.run({ customTools });
    expect(recorded.result.ok).toBe(true);
    expect(eventsOf(recorded, "message")[0]?.text).toContain("too many levels of lists and objects");
    expect(world.callback.calls).toEqual([]);
  });
});
