import type { InputAnswer } from "@ambit/core/plugin";
import { done, type Script } from "@ambit/fakes/harness";
import { describe, expect, it } from "vitest";
import { createWorld, eventsOf, recordsOf, type Told } from "../../fakes/world.js";

const form = { type: "object", properties: { branch: { type: "string" } } };

/** Asks its user for a branch, and says what it heard. */
const asks = (received: (InputAnswer | undefined)[]): Script =>
  async function* ({ onInput }) {
    const answer = await onInput?.({ message: "Which branch?", form });
    received.push(answer);
    yield { type: "message", text: "asked" };
    yield done;
  };

async function world() {
  const received: (InputAnswer | undefined)[] = [];
  return { received, ...(await createWorld({ script: asks(received) })) };
}

describe("a question of an agent to its user", () => {
  it("pauses the run, and is answered by the next request", async () => {
    const { run, received } = await world();
    const first = await run({ sessionId: "s" });
    expect(first.result).toMatchObject({ ok: true, stopReason: "paused" });
    const [asked, ...more] = eventsOf(first, "interaction_request");
    expect(more).toEqual([]);
    expect(asked).toMatchObject({
      kind: "user_input",
      payload: { toolCallId: asked?.id, toolName: "elicitation", input: { message: "Which branch?", form } },
    });
    const answer = (output: unknown) => ({
      sessionId: "s",
      messages: [
        { role: "user", content: "go" },
        { role: "tool", content: [{ type: "tool_result", toolCallId: asked?.id, output }] },
      ],
    });
    const second = await run(answer({ branch: "main" }));
    expect(received).toEqual(["park", { action: "accept", content: { branch: "main" } }]);
    expect(eventsOf(second, "interaction_response")).toMatchObject([
      { id: asked?.id, kind: "user_input", payload: { action: "accept" } },
    ]);
    // The same answer counts once.
    expect((await run(answer({ branch: "main" }))).result.stopReason).toBe("paused");
  });

  it.each([
    { output: { branch: "main" }, received: { action: "accept", content: { branch: "main" } } },
    { output: { branch: { nested: true } }, received: { action: "decline" } },
    { output: "main", received: { action: "decline" } },
    { output: {}, isError: true, received: { action: "decline" } },
  ])(
    "takes a live answer: $output is $heard.action",
    async ({ output, isError = false, received: expected }) => {
      const made = await world();
      const run = await made.admit({ interactions: { waitMs: 20_000 } });
      let result: Told["result"] | undefined;
      for await (const record of recordsOf(run)) {
        if (record.kind === "result") result = record.result;
        else if (record.event.type === "interaction_request")
          made.runner.answer(run.id, record.event.id, { output, isError });
      }
      expect(made.received).toEqual([expected]);
      expect(result).toMatchObject({ ok: true, output: "asked" });
    },
  );

  it("is declined when the agent withdraws it", async () => {
    const withdrawal = new AbortController();
    const received: (InputAnswer | undefined)[] = [];
    const script: Script = async function* ({ onInput }) {
      received.push(await onInput?.({ message: "Which branch?", form }, withdrawal.signal));
      yield done;
    };
    const made = await createWorld({ script });
    const run = await made.admit({ interactions: { waitMs: 20_000 } });
    const expired: string[] = [];
    for await (const record of recordsOf(run)) {
      if (record.kind !== "event") continue;
      if (record.event.type === "interaction_request") withdrawal.abort();
      if (record.event.type === "interaction_expired") expired.push(record.event.kind);
    }
    expect(received).toEqual([{ action: "decline" }]);
    expect(expired).toEqual(["user_input"]);
  });

  it("is declined after 64 questions in one run", async () => {
    const received: (InputAnswer | undefined)[] = [];
    const script: Script = async function* ({ onInput }) {
      for (let time = 0; time < 65; time += 1) received.push(await onInput?.({ message: `${time}`, form }));
      yield { type: "message", text: "asked" };
      yield done;
    };
    const made = await createWorld({ script });
    const run = await made.admit({ interactions: { waitMs: 20_000 } });
    for await (const record of recordsOf(run))
      if (record.kind === "event" && record.event.type === "interaction_request")
        made.runner.answer(run.id, record.event.id, { output: {} });
    expect(received.slice(-2)).toEqual([{ action: "accept", content: {} }, { action: "decline" }]);
  });
});
