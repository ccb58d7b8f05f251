import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answering, asking, ownToolsAllowed, startAgent } from "../support/agents.js";
import { Stage } from "../support/stage.js";
import { clientTool } from "../support/tools.js";

// The second stage keeps a session for a millisecond only, so it ends before another run can start.
let patient: Stage;
let forgetful: Stage;
beforeAll(async () => {
  [patient, forgetful] = await Promise.all([Stage.open(), Stage.open({ limits: { sessionTtlMs: 1 } })]);
});
afterAll(() => Promise.all([patient.close(), forgetful.close()]));

const pick = 'call pick {"n":1}';
const answers = [{ tool: "pick", input: { n: 1 }, output: "crimson" }];

/** The agent's process, identified by its start time, and what its session remembers. */
const whoAmI = "run cut -d' ' -f22 /proc/$PPID/stat\nrecall";

function requestWith(sessionId: string, more: object = {}): object {
  const permissions = { rules: ownToolsAllowed };
  return { harness: "demo", sessionId, permissions, customTools: [clientTool("pick")], ...more };
}

/** Waits until the sessions that are kept for a millisecond have ended. */
const expiry = () => expect.poll(() => forgetful.runner.sessions).toEqual([]);

async function pausedThenAnswered(stage: Stage, sessionId: string, changes: object = {}) {
  const first = await stage.run(requestWith(sessionId, asking(`${whoAmI}\n${pick}`)));
  expect((await first.result).stopReason).toBe("paused");
  if (stage === forgetful) await expiry();
  const next = answering(`${whoAmI}\n${pick}`, answers, `${pick}\n${whoAmI}`, first);
  const second = await stage.run({ ...requestWith(sessionId, next), ...changes });
  const result = await second.result;
  expect(second.resultsOf("pick")).toMatchObject([{ output: "crimson" }]);
  const startedAt = (run: typeof first) => run.resultsOf("run")[0]?.output;
  return {
    history: result.receipt?.session.history,
    sameProcess: startedAt(first) === startedAt(second),
    remembers: String(result.output).includes("$PPID"),
  };
}

describe("a session whose run waits for the user", () => {
  it("is resumed by the same process of the agent", async () => {
    expect(await pausedThenAnswered(patient, "warm")).toEqual({
      history: "warm",
      sameProcess: true,
      remembers: true,
    });
  });

  it("is loaded by a new one if the next run has other settings", async () => {
    const changes = { permissions: { default: "allow" } };
    expect(await pausedThenAnswered(patient, "changed", changes)).toEqual({
      history: "loaded",
      sameProcess: false,
      remembers: true,
    });
  });

  it("is replayed to a new one after its time to live", async () => {
    expect(await pausedThenAnswered(forgetful, "expired")).toEqual({
      history: "replayed",
      sameProcess: false,
      remembers: false,
    });
  });

  it("is replayed after its user ended it", async () => {
    const first = await patient.run(requestWith("ended", asking(pick)));
    expect((await first.result).stopReason).toBe("paused");
    expect(await patient.runner.endSession("ended")).toBe(true);
    const second = await patient.run(requestWith("ended", answering(pick, answers, pick, first)));
    expect((await second.result).receipt?.session.history).toBe("replayed");
    expect(second.resultsOf("pick")).toMatchObject([{ output: "crimson" }]);
  });
});

const warm = { history: "warm", stageOf: () => patient, changes: {} };
const loaded = { history: "loaded", stageOf: () => patient, changes: { permissions: { default: "allow" } } };
const replayed = { history: "replayed", stageOf: () => forgetful, changes: {} };

describe("the agents with a model", () => {
  // Gemini CLI can't load what it stored in the same minute: see harness-acp's README.
  it.each([
    { id: "gemini", ...warm },
    { id: "gemini", ...replayed },
    { id: "codex", ...warm },
    { id: "codex", ...loaded },
    { id: "codex", ...replayed },
  ] as const)("$id: $history", { timeout: 60_000 }, async ({ id, history, stageOf, changes }) => {
    const agent = await startAgent(id);
    const stage = stageOf();
    const call = agent.prompt({ tool: "pick", input: { n: 1 } });
    const said = `[[say An earlier word.]] ${call}`;
    const request = { ...requestWith(`${id}-${history}`), ...agent.request };
    const first = await stage.run({ ...request, ...asking(said) });
    expect((await first.result).stopReason).toBe("paused");
    if (stage === forgetful) await expiry();
    const before = agent.model?.requests.length;
    const second = await stage.run({ ...request, ...changes, ...answering(said, answers, call, first) });
    expect(await second.result).toMatchObject({ ok: true, receipt: { session: { history } } });
    expect(second.resultsOf("pick")).toMatchObject([{ output: "crimson" }]);
    // The model gets the earlier turn in both cases: from the agent's record, or from Ambit's transcript. An agent may send its
    // model requests beside the turn too, so the last one needn't be the turn's.
    const bodies = agent.model?.requests.slice(before).map(({ body }) => JSON.stringify(body)) ?? [];
    const withEarlierTurn = bodies.filter((body) => body?.includes("An earlier word."));
    expect(withEarlierTurn, JSON.stringify(bodies)).not.toEqual([]);
    const areReplayed = withEarlierTurn.map((body) => body.includes("The conversation so far"));
    expect(new Set(areReplayed)).toEqual(new Set([history === "replayed"]));
    await agent.close();
  });
});
