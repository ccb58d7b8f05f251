import {
  type AgentEvent,
  HarnessFailed,
  ModelFailed,
  type PermissionDecision,
  RunCancelled,
} from "@ambit/core/plugin";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { claude } from "../../src/profiles/claude.js";
import { codex } from "../../src/profiles/codex.js";
import { gemini } from "../../src/profiles/gemini.js";
import { opencode } from "../../src/profiles/opencode.js";
import { pi } from "../../src/profiles/pi.js";
import type { Profile } from "../../src/profiles/profile.js";
import { qwen } from "../../src/profiles/qwen.js";
import { AgentStage, isTested, testsWhole } from "../support/agent-stage.js";
import { eventsOf, failureOf, ofType, textOf, turnOf } from "../support/runs.js";
import { startToolServer } from "../support/tool-server.js";

type Started = Awaited<ReturnType<AgentStage["start"]>>;

const all: readonly Profile[] = [claude, codex, gemini, opencode, pi, qwen];
const tested = all.filter(({ id }) => isTested(id, "codex", "gemini", "pi"));

/** A provider's error response, and whether a second try may succeed. */
const statuses: readonly { readonly status: number; readonly retryable: boolean }[] = [
  { status: 401, retryable: false },
  { status: 402, retryable: false },
  { status: 403, retryable: false },
  { status: 429, retryable: true },
  { status: 500, retryable: true },
  { status: 529, retryable: true },
];

/** Statuses that an agent doesn't pass on: it reports their meaning. */
const unsaid: Readonly<Record<string, readonly number[]>> = {
  claude: [401, 403],
  codex: [401, 500],
  opencode: [401, 402, 403],
};

/** They retry for more than a minute unless a gateway stops that: `test/tools` has these rows for them. */
const retrying: readonly Profile[] = [opencode, qwen];

/** All tests of an agent use one process, since a start takes seconds. */
describe.each(tested)("failures of $title", { timeout: 120_000 }, (profile) => {
  let stage: AgentStage;
  let started: Started;
  const request = () => stage.requestWith();
  beforeAll(async () => {
    stage = await AgentStage.open(profile);
    started = await stage.start({ request: request() });
  }, 60_000);
  afterAll(() => stage.close());

  const failing = (prompt: string) => failureOf(started.agent, turnOf({ prompt }));
  const saying = async (text: string) =>
    expect(textOf(await eventsOf(started.agent, turnOf({ prompt: `[[say ${text}]]` })))).toBe(text);

  const isRetrying = retrying.includes(profile);
  it.each(isRetrying ? statuses.slice(0, 3) : statuses)(
    "reports its model's $status by itself",
    async ({ status, retryable }) => {
      const { error } = await failing(`[[http ${status}]]`);
      expect(error).toBeInstanceOf(ModelFailed);
      const isSaid = unsaid[profile.id]?.includes(status) !== true;
      expect(error).toMatchObject({ retryable, upstreamStatus: isSaid ? status : undefined });
      expect(String(error)).not.toContain(stage.key);
    },
  );

  const tellsOfACut = () =>
    it("reports a response that was interrupted", async () => {
      const { error } = await failing("[[drop]]");
      expect(error).toBeInstanceOf(ModelFailed);
      expect(error).toMatchObject({ retryable: true, upstreamStatus: undefined });
    });
  if (!isRetrying) tellsOfACut();

  const saysNothing = () =>
    it("emits nothing if its model responds with nothing, which the runner counts as a failure", async () => {
      const turn = turnOf({ prompt: "[[say]]" });
      const outcome = await eventsOf(started.agent, turn).catch((error: unknown) => error);
      if (outcome instanceof Error)
        expect(outcome).toBeInstanceOf(profile === qwen ? HarnessFailed : ModelFailed);
      else expect(JSON.stringify(outcome)).not.toMatch(/"(message_delta|thought_delta|tool_call)"/);
    });
  // It queries its model again.
  if (profile !== claude) saysNothing();

  async function cancelled(prompt: string, when: "message_delta" | "tool_call" | "question") {
    const abort = new AbortController();
    const stop = () => abort.abort(new RunCancelled("cancelled"));
    const answer = () => {
      if (when !== "question") return Promise.resolve("allow" as const);
      stop();
      return new Promise<PermissionDecision>(() => {});
    };
    const turn = turnOf({ prompt, signal: abort.signal, answer });
    const events = [];
    for await (const event of started.agent.prompt(turn)) {
      events.push(event);
      if (event.type === when) stop();
    }
    expect(abort.signal.aborted).toBe(true);
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "cancelled" });
    // Every call ends, and the agent serves another turn.
    expect(ofType(events, "tool_result").map(({ id }) => id)).toEqual(
      ofType(events, "tool_call").map(({ id }) => id),
    );
    expect(started.agent.ended()).toBe(false);
    await saying("going on");
  }

  it("is cancelled while it emits text, ends its model request, and serves the next turn", async () => {
    await cancelled("[[slow 500 20]]", "message_delta");
    await stage.model.waitFor((request) => request.aborted);
  });

  it("is cancelled while its command runs, and serves the next turn", () =>
    cancelled("[[shell sleep 100]]", "tool_call"));

  const isCancelledInQuestion = () =>
    it("is cancelled with its question open, and serves the next turn", () =>
      cancelled("[[shell touch made]]", "question"));
  if (profile.supportsPermissionRequests) isCancelledInQuestion();

  const needsASecondStart = () => {
    it("fails the turn if it is killed during a response", async () => {
      const turn = started.agent.prompt(turnOf({ prompt: "[[slow 500 20]]" }))[Symbol.asyncIterator]();
      const until = async (reached: (next: IteratorResult<AgentEvent>) => boolean) => {
        for (let next = await turn.next(); !reached(next); next = await turn.next());
      };
      await until(({ value }) => value?.type === "message_delta");
      await stage.sandbox.spawned.at(-1)?.kill();
      const rest = until(({ done }) => done === true);
      await expect(rest).rejects.toBeInstanceOf(HarnessFailed);
      await expect(rest).rejects.toThrow("SIGKILL");
      expect(started.agent.ended()).toBe(true);
    });

    it("fails without its tool server", async () => {
      const tools = await startToolServer();
      await tools[Symbol.asyncDispose]();
      started = await stage.start({ request: request(), servers: [tools.published] });
      const { error } = await failing("[[say without tools]]");
      expect(error).toBeInstanceOf(HarnessFailed);
      expect(String(error)).toContain("never asked for the run's tools");
    });
  };
  if (testsWhole || profile === codex) needsASecondStart();

  const failsWithoutAnswer = () =>
    it("fails if its model's endpoint doesn't respond", async () => {
      await stage.model.close();
      const { error } = await failing("hello");
      expect(error).toBeInstanceOf(ModelFailed);
      expect(error).toMatchObject({ retryable: true, upstreamStatus: undefined });
    });
  if (!isRetrying) failsWithoutAnswer();
});
