import { InteractionExpired, NotFound, RequestInvalid } from "@ambit/core";
import { calls, done, type Script, untilAborted } from "@ambit/fakes/harness";
import { describe, expect, test } from "vitest";
import { asks, client, given } from "../../fakes/parked-calls.js";
import { createWorld, eventsOf, recordsOf, type Told } from "../../fakes/world.js";

describe("a live answer, while the run is held open", () => {
  const interactions = { waitMs: 5_000 };
  const two: Script = async function* ({ tools, signal }) {
    const own = tools();
    const first = own.call("send", { to: "ann" });
    const second = own.call("send", { to: "bob" });
    for (const outcome of [await untilAborted(signal, first), await untilAborted(signal, second)]) {
      yield { type: "message", text: outcome?.output ?? "(none)" };
    }
    yield done;
  };

  async function begun(script: Script, body: object, waitMs = interactions.waitMs) {
    const world = await createWorld({ script });
    const run = await world.admit({ ...body, interactions: { waitMs } });
    const events: Told["events"][number][] = [];
    let result: Told["result"] | undefined;
    const reading = (async () => {
      for await (const record of recordsOf(run)) {
        if (record.kind === "event") events.push(record.event);
        else result = record.result;
      }
      return result;
    })();
    const open = async (count: number) => {
      await expect.poll(() => eventsOf({ events }, "interaction_request")).toHaveLength(count);
      return eventsOf({ events }, "interaction_request").map(({ id }) => id);
    };
    return { world, run, events, reading, open };
  }

  test("answers in any order reach their own calls, each once", async () => {
    const { world, run, reading, open, events } = await begun(two, { customTools: [asks] });
    const [ann = "", bob = ""] = await open(2);
    world.runner.answer(run.id, bob, { approved: true });
    expect(() => world.runner.answer(run.id, bob, { approved: true })).toThrow(NotFound);
    world.runner.answer(run.id, ann, { approved: false });
    expect(await reading).toMatchObject({
      ok: true,
      stopReason: "end_turn",
      output: 'The user did not approve tool \'send\'.\n\n{"to":"bob"}',
    });
    expect(eventsOf({ events }, "interaction_response").map(({ id }) => id)).toEqual([bob, ann]);
    expect(() => world.runner.answer(run.id, ann, { approved: true })).toThrow(NotFound);
  });

  test("a question that the agent withdraws is over, and the run goes on without it", async () => {
    const withdrawal = new AbortController();
    const decisions: unknown[] = [];
    const script: Script = async function* ({ ask }) {
      const wipe = { toolCallId: "c", toolName: "wipe", input: {} };
      decisions.push(await ask(wipe, withdrawal.signal));
      yield { type: "message", text: "went on" };
      // Control: the same question again waits for its answer.
      decisions.push(await ask({ ...wipe, toolCallId: "d" }, new AbortController().signal));
      yield done;
    };
    const body = { sessionId: "s", permissions: { default: "ask" } };
    const { world, run, reading, open, events } = await begun(script, body);
    const [id = ""] = await open(1);
    withdrawal.abort();
    const [, again = ""] = await open(2);
    expect(() => world.runner.answer(run.id, id, { approved: true })).toThrow(InteractionExpired);
    expect(() => world.runner.answer(run.id, id, { approved: true })).toThrow("has withdrawn");
    world.runner.answer(run.id, again, { approved: true });
    expect(await reading).toMatchObject({ ok: true, stopReason: "end_turn", output: "went on" });
    expect(decisions).toEqual(["deny", "allow"]);
    expect(eventsOf({ events }, "interaction_expired")).toEqual([
      { type: "interaction_expired", id, kind: "user_approval" },
    ]);
    expect(eventsOf({ events }, "interaction_response")).toMatchObject([{ id: again }]);
    // Nor does an answer count that a later request brings.
    const late = { type: "tool_result", toolCallId: id, output: { approved: true } };
    const { result } = await world.run({
      ...body,
      messages: [
        { role: "user", content: "go" },
        { role: "tool", content: [late] },
      ],
    });
    expect(result).toMatchObject({
      stopReason: "paused",
      warnings: [expect.objectContaining({ message: expect.stringContaining("withdrawn") })],
    });
  });

  test("a forged id, or an unsuitable answer, executes nothing and leaves the question open", async () => {
    const { world, run, reading, open } = await begun(calls("send", given), { customTools: [asks] });
    const [id = ""] = await open(1);
    expect(() => world.runner.answer(run.id, "forged", { approved: true })).toThrow(NotFound);
    expect(() => world.runner.answer("forged", id, { approved: true })).toThrow(NotFound);
    for (const wrong of [{ output: "x" }, { approved: "yes" }, {}, null, { approved: true, extra: 1 }]) {
      expect(() => world.runner.answer(run.id, id, wrong)).toThrow(RequestInvalid);
    }
    expect(world.callback.calls).toEqual([]);
    world.runner.answer(run.id, id, { approved: true });
    expect(await reading).toMatchObject({ stopReason: "end_turn" });
    expect(world.callback.calls).toHaveLength(1);
  });

  test("a client tool gets its output", async () => {
    const { world, run, reading, open, events } = await begun(calls("pick", given), {
      customTools: [client],
    });
    const [id = ""] = await open(1);
    expect(() => world.runner.answer(run.id, id, { approved: true })).toThrow(RequestInvalid);
    const deep: unknown = JSON.parse(`${"[".repeat(5_000)}${"]".repeat(5_000)}`);
    expect(() => world.runner.answer(run.id, id, { output: deep })).toThrow("more than 100 levels");
    world.runner.answer(run.id, id, { output: { city: "Bern" } });
    expect(await reading).toMatchObject({ stopReason: "end_turn" });
    expect(eventsOf({ events }, "tool_result")).toMatchObject([
      { output: '{"city":"Bern"}', isError: false },
    ]);
  });

  test("without an answer in time the run pauses, and a late one finds no question", async () => {
    const { world, run, reading, open } = await begun(two, { customTools: [asks] }, 40);
    const [ann = ""] = await open(2);
    expect(await reading).toMatchObject({ ok: true, stopReason: "paused" });
    expect(() => world.runner.answer(run.id, ann, { approved: true })).toThrow(NotFound);
    expect(world.callback.calls).toEqual([]);
  });

  test("the agent's own time limit for calls applies", async () => {
    const world = await createWorld({ script: calls("send", given), harness: { maxToolCallMs: 30 } });
    const { result } = await world.run({ customTools: [asks], interactions: { waitMs: 60_000 } });
    expect(result.stopReason).toBe("paused");
  });

  test("an agent's own question is held too, and pauses the idle clock", async () => {
    const world = await createWorld({
      limits: { idleMs: 40 },
      script: async function* ({ ask }) {
        yield {
          type: "message",
          text: await ask({ toolCallId: "b", toolName: "Bash", input: { command: "ls" } }),
        };
        yield done;
      },
    });
    const run = await world.admit({ interactions });
    const events: Told["events"][number][] = [];
    const reading = (async () => {
      for await (const record of recordsOf(run)) if (record.kind === "event") events.push(record.event);
    })();
    await expect.poll(() => eventsOf({ events }, "interaction_request")).toHaveLength(1);
    await new Promise((resolve) => setTimeout(resolve, 120));
    world.runner.answer(run.id, eventsOf({ events }, "interaction_request")[0]?.id ?? "", { approved: true });
    await reading;
    expect(eventsOf({ events }, "message")).toEqual([{ type: "message", text: "allow" }]);
  });

  test("a cancel ends the wait", async () => {
    const { world, run, reading, open } = await begun(calls("send", given), { customTools: [asks] });
    await open(1);
    world.runner.cancel(run.id);
    expect(await reading).toMatchObject({ stopReason: "cancelled" });
    expect(world.callback.calls).toEqual([]);
  });
});
