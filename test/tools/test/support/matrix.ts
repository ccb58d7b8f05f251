import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { AgentEvent } from "@ambit/core";
import callback from "@ambit/executor-callback";
import client from "@ambit/executor-client";
import code from "@ambit/executor-code";
import acp from "@ambit/harness-acp";
import mcp from "@ambit/mcp-http";
import modelRoute from "@ambit/model-route";
import { type ModelServer, startModelServer } from "@ambit/model-server";
import type { Runner } from "@ambit/runner";
import local from "@ambit/sandbox-local";
import { openAmbit, takeEnvironment } from "ambit";
import { expect } from "vitest";
import { modelKey } from "./agents.js";
import { folder } from "./installed.js";

/** An agent's part of a request, and its particulars in the matrix. */
export interface MatrixAgent {
  readonly id: string;
  readonly credential: string;
  /** The part of the API's path in its base URL. */
  readonly basePath: "" | "/v1";
  /** A model that it accepts with the scripted server, if its default isn't one. */
  readonly model?: string;
  /** It doesn't ask before it uses its own tools: runs that need permissions for them are refused. */
  readonly neverAsks?: true;
}

const openai = { credential: "OPENAI_API_KEY", basePath: "/v1" } as const;

export const matrixAgents: readonly MatrixAgent[] = [
  { id: "claude", credential: "ANTHROPIC_API_KEY", basePath: "" },
  { id: "codex", ...openai, neverAsks: true },
  { id: "gemini", credential: "GEMINI_API_KEY", basePath: "" },
  { id: "opencode", ...openai },
  { id: "pi", ...openai },
  { id: "qwen", ...openai },
];

/** What `AMBIT_TEST_AGENTS` says: the ids of agents, separated by commas, or `all`. Those are tested whole. */
const chosen = process.env.AMBIT_TEST_AGENTS?.split(",");
export const testsWhole = chosen !== undefined;

/** The agents that `AMBIT_TEST_AGENTS` names. Default: these. */
export const agentsOr = (...ids: readonly string[]) =>
  matrixAgents.filter(({ id }) => (chosen ?? ids).includes(id) || chosen?.includes("all"));

/** Agents that every test run has, or those of `AMBIT_TEST_AGENTS`. */
export const testedAgents = agentsOr("codex", "gemini", "pi");

/** US dollars per million tokens of every model here. */
export const price = { input: 2, output: 10 };

export async function openMatrix(): Promise<{ readonly runner: Runner; readonly model: ModelServer }> {
  const model = await startModelServer({ expectedKey: modelKey });
  const { runner } = await openAmbit({
    environment: takeEnvironment({}),
    configuration: {
      plugins: [
        { use: local, config: { unconfined: "refuse" } },
        { use: acp, config: { folder } },
        { use: modelRoute, config: { prices: { "*": price } } },
        mcp,
        callback,
        code,
        client,
      ],
    },
    logLevel: "silent",
  });
  return { runner, model };
}

/** `examples/agents/<id>.json` of the README, with this test's model server. */
export async function exampleRequest(agent: MatrixAgent, model: ModelServer) {
  const path = join(import.meta.dirname, "../../../../examples/agents", `${agent.id}.json`);
  const example = JSON.parse((await readFile(path, "utf8")).replace("http://127.0.0.1:8768", model.url));
  example.modelConnection.credentials[0].value = modelKey;
  return example;
}

export function agentRequest(agent: MatrixAgent, model: ModelServer): object {
  return {
    harness: agent.id,
    ...(agent.model === undefined ? {} : { model: agent.model }),
    modelConnection: {
      endpoint: { baseUrl: `${model.url}${agent.basePath}` },
      credentials: [{ binding: { kind: "environment", name: agent.credential }, value: modelKey }],
    },
  };
}

/** The provider's status, and whether the failure is retryable. Every test run has the last one. */
export const statuses: readonly (readonly [status: number, retryable: boolean])[] = [
  [401, false],
  [402, false],
  [403, false],
  [429, true],
  [500, true],
  [529, true],
];

/** One pixel. */
export const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** Hosts that an agent connects to at each start, without a setting to prevent it. */
export const askedFor: Readonly<Record<string, readonly string[]>> = {
  // In parts: no file may name a package registry.
  opencode: [["registry", "npmjs", "org:443"].join(".")],
};

/** An agent's own tools that make its model's provider search. */
export const searches: Readonly<Record<string, string>> = {
  claude: "WebSearch",
  gemini: "google_web_search",
};

/** Every call has one result after it, unless the run paused over it, and what was said before a call is before it. */
export function expectOrdered(events: readonly AgentEvent[]): void {
  const at = (type: AgentEvent["type"], id?: string) =>
    events.findIndex(
      (event) => event.type === type && (id === undefined || ("id" in event && event.id === id)),
    );
  const asked = new Set(
    events.flatMap((event) =>
      event.type === "interaction_request" ? [String(Object(event.payload).toolCallId)] : [],
    ),
  );
  const paused = events.some((event) => event.type === "done" && event.stopReason === "paused");
  for (const event of events) {
    if (event.type !== "tool_call") continue;
    const results = events.filter(
      ({ type, ...more }) => type === "tool_result" && "id" in more && more.id === event.id,
    );
    expect(results, `results of ${event.id}`).toHaveLength(paused && asked.has(event.id) ? 0 : 1);
    if (results.length > 0) expect(at("tool_result", event.id)).toBeGreaterThan(at("tool_call", event.id));
  }
  expect(at("message_start"), "text before the call").toBeLessThan(at("tool_call"));
  expect(at("message_start"), "text").toBeGreaterThanOrEqual(0);
}
