import { describe, expect, it } from "vitest";
import { SessionState, stateIn } from "../../src/driver/updates.js";
import { chunk, endTurn, fakeAgent } from "../support/fake-agent.js";
import { eventsOf, textOf, turnOf } from "../support/runs.js";

const commands = { sessionUpdate: "available_commands_update", availableCommands: [{ name: "review" }] };
const mode = (currentModeId: unknown) => ({ sessionUpdate: "current_mode_update", currentModeId });
const options = (value: unknown) => ({
  sessionUpdate: "config_option_update",
  configOptions: [
    { id: "effort", name: "Effort", category: "thought_level", currentValue: value, options: [] },
  ],
});

describe("the state of a session", () => {
  it.each([
    [
      "commands",
      {
        ...commands,
        availableCommands: [
          { name: "a", description: "d", input: { hint: "h" } },
          { name: "b", description: "x".repeat(2_000), input: null },
          { name: "n".repeat(300) },
          {},
          null,
        ],
      },
      { type: "commands", commands: [{ name: "a", description: "d", hint: "h" }, { name: "b" }] },
    ],
    ["no list", { ...commands, availableCommands: "?" }, { type: "commands", commands: [] }],
    ["a mode", mode("plan"), { type: "mode", mode: "plan" }],
    ["no mode", mode(7), undefined],
    [
      "options",
      options("high"),
      {
        type: "configuration",
        options: [{ id: "effort", name: "Effort", category: "thought_level", value: "high" }],
      },
    ],
    ["a value of another kind", options(7), { type: "configuration", options: [] }],
    ["anything else", { sessionUpdate: "plan", entries: [] }, undefined],
  ])("%s", (_what, update, event) => {
    expect(stateIn(update)).toEqual(event);
  });

  it("has a limit", () => {
    const many = {
      ...commands,
      availableCommands: Array.from({ length: 1_000 }, (_, at) => ({ name: `c${at}` })),
    };
    const event = stateIn(many);
    expect(event?.type === "commands" && event.commands).toHaveLength(256);
  });

  it("is reported when it changes, and what was noted between two turns with the next", () => {
    const state = new SessionState();
    state.note(commands);
    state.note(mode("set by this run"));
    state.begin();
    expect(state.take()).toMatchObject([{ type: "commands" }]);
    expect(state.changed(commands)).toBeUndefined();
    expect(state.changed(mode("plan"))).toEqual({ type: "mode", mode: "plan" });
    expect(state.changed(mode("plan"))).toBeUndefined();
    state.note(mode("code"));
    expect(state.take()).toEqual([{ type: "mode", mode: "code" }]);
    expect(state.take()).toEqual([]);
  });

  it("comes as events of the turn, and doesn't cut a text in two", async () => {
    const fake = fakeAgent({
      onPrompt: async (turn) => {
        await turn.update(chunk("one "));
        await turn.update(mode("plan"));
        await turn.update(options("high"));
        await turn.update(chunk("text"));
        return endTurn;
      },
      onSessionRequest: async () => ({}),
    });
    const { agent, scope } = await fake.start();
    const events = await eventsOf(agent, turnOf());
    expect(textOf(events)).toBe("one text");
    expect(events.map(({ type }) => type).slice(0, 6)).toEqual([
      "message_start",
      "message_delta",
      "mode",
      "configuration",
      "message_delta",
      "message_end",
    ]);
    // The same again is no change.
    const again = (await eventsOf(agent, turnOf())).map(({ type }) => type);
    expect(again).not.toContain("mode");
    expect(again).not.toContain("configuration");
    await scope.close();
  });
});
