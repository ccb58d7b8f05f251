import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TurnResult } from "../harness/turn.js";
import { type OwnToolsCase, shellCommands } from "../permissions/own-tools-case.js";
import { OwnToolsStage } from "../permissions/own-tools-stage.js";

/** For all turns of one test: an agent's start may take seconds. */
const testMs = 180_000;

/**
 * Whether an agent obeys the permissions for its own tools, as a suite: its real program is made to try commands and
 * tools, including harmless ones, with each denied, left open and allowed. A harness that declares no support for
 * permission requests is only tested with allowed tools: other runs are refused.
 */
export function describeHarnessPermissions(tried: OwnToolsCase): void {
  const { name, supportsPermissionRequests } = tried.harness();
  describe(`permissions for ${name}'s own tools`, { timeout: testMs }, () => {
    if (supportsPermissionRequests) describeHeld(tried);
    else describeUnasked(tried);
  });
}

function describeHeld(tried: OwnToolsCase): void {
  const { ownTools = {} } = tried.harness();

  describe("denied", () => {
    const stage = stageOf(tried, "deny");

    it.each(triedCalls(tried))("asks before $title, and doesn't make the call", async ({ tool, run }) => {
      const turn = await run(stage(), { answer: "deny" });
      expectAsked(turn, tool);
      expect(resultsOf(turn)).toMatchObject([{ isError: true, denied: true }]);
      expect(await stage().acted(), "the agent acted although the call was not allowed").toBe(false);
    });

    it("offers its model no tool but those that it names and that are tried here", () => {
      const offered = stage().offered();
      expect(offered.length, "the agent must offer its model at least one tool").toBeGreaterThan(0);
      expect(
        offered.filter((tool) => !(tool in ownTools)),
        "offered, and not in ownTools",
      ).toEqual([]);
      const names = [
        tried.shell,
        ...tried.calls.map(({ tool }) => tool),
        ...Object.keys(tried.untried ?? {}),
      ];
      expect(
        offered.filter((tool) => !names.includes(tool)),
        "offered, and neither in calls nor in untried",
      ).toEqual([]);
    });
  });

  describe("left open", () => {
    const stage = stageOf(tried, "ask");

    it.each(triedCalls(tried))("pauses over $title, and doesn't make the call", async ({ tool, run }) => {
      const turn = await run(stage(), { answer: "park" });
      expectAsked(turn, tool);
      expect(resultsOf(turn)).toEqual([]);
      expect(turn.events.at(-1)).toMatchObject({ type: "done", stopReason: "paused" });
      expect(await stage().acted(), "the agent acted although the call was not allowed").toBe(false);
    });
  });

  describe("allowed", () => {
    const stage = stageOf(tried, "allow");

    const notes = (tried.notes ?? []).map((call) => ({ ...call, title: call.tool }));
    it.each(notes)("asks before $title too", async (call) => {
      const turn = await stage().call(call, { answer: "deny" });
      expectAsked(turn, call.tool);
    });

    it.each(shellCommands)("runs %s when the answer is yes", async (command) => {
      await stage().forget();
      const turn = await stage().shell(command, {
        answer: "allow",
        onQuestion: async () => expect(await stage().acted(), "it acted before the answer").toBe(false),
      });
      expectAsked(turn, tried.shell);
      expect(resultsOf(turn).map(({ denied }) => denied)).toEqual([undefined]);
      expect(await stage().acted(), "whether the command acted must be seen in the workspace").toBe(
        /made/.test(command),
      );
    });
  });

  it("would run a harmless command unasked without what makes it ask (the control)", async () => {
    expect(tried.unguarded, "the suite needs a control: unguarded").toBeDefined();
    const stage = await OwnToolsStage.open(tried, (tried.unguarded ?? tried.harness)(), "allow");
    try {
      const turn = await stage.shell("ls -la", { answer: "deny" });
      expect(turn.questions).toEqual([]);
      expect(resultsOf(turn).map(({ denied, isError }) => ({ denied, isError }))).toEqual([{}]);
    } finally {
      await stage.close();
    }
  });
}

/** No question is asked, so no answer counts: the harness's own declaration applies. */
function describeUnasked(tried: OwnToolsCase): void {
  const stage = stageOf(tried, "allow");

  it.each(shellCommands)("runs %s without a question, as it declares", async (command) => {
    await stage().forget();
    const turn = await stage().shell(command, { answer: "deny" });
    expect(turn.questions).toEqual([]);
    expect(resultsOf(turn), "the call must have one result").toHaveLength(1);
    expect(await stage().acted(), "whether the command acted must be seen in the workspace").toBe(
      /made/.test(command),
    );
  });
}

function stageOf(tried: OwnToolsCase, mode: "deny" | "ask" | "allow"): () => OwnToolsStage {
  let stage: OwnToolsStage | undefined;
  beforeAll(async () => {
    stage = await OwnToolsStage.open(tried, tried.harness(), mode);
  }, testMs);
  afterAll(() => stage?.close());
  return () => {
    if (stage === undefined) throw new Error("the agent didn't start");
    return stage;
  };
}

interface TriedCall {
  readonly title: string;
  /** By the name in its question. */
  readonly tool: string;
  run(stage: OwnToolsStage, options: { readonly answer: "deny" | "park" }): Promise<TurnResult>;
}

function triedCalls({ shell, calls }: OwnToolsCase): readonly TriedCall[] {
  return [
    ...shellCommands.map((command) => ({
      title: command,
      tool: shell,
      run: (stage: OwnToolsStage, options: { readonly answer: "deny" | "park" }) =>
        stage.shell(command, options),
    })),
    ...calls.map((call) => ({
      title: `${call.tool} ${JSON.stringify(call.input)}`,
      tool: call.tool,
      run: (stage: OwnToolsStage, options: { readonly answer: "deny" | "park" }) => stage.call(call, options),
    })),
  ];
}

function expectAsked({ failure, questions, events }: TurnResult, tool: string): void {
  expect(failure).toBeUndefined();
  expect(questions.map(({ toolName }) => toolName)).toEqual([tool]);
  expect(events.filter(({ type }) => type === "tool_call")).toMatchObject([{ name: tool }]);
}

function resultsOf({ events }: TurnResult) {
  return events.flatMap((event) => (event.type === "tool_result" ? [event] : []));
}
