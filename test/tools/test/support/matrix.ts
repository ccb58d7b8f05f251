import { readFile } from "node:fs/promises";
import { join } from "node:path";
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
import { modelKey } from "./agents.js";
import { folder } from "./installed.js";

/** What a request needs to name an agent, and what is particular to it in the matrix. */
export interface MatrixAgent {
  readonly id: string;
  readonly credential: string;
  /** What of the API's path its base URL holds. */
  readonly basePath: "" | "/v1";
  /** One that it takes beside the scripted model server, where its default isn't one. */
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

export const testsAll = process.env.AMBIT_TEST_AGENTS === "all";

/** Those that every test run has, or with `AMBIT_TEST_AGENTS=all` every one. */
export const testedAgents = testsAll
  ? matrixAgents
  : matrixAgents.filter(({ id }) => ["codex", "gemini", "pi"].includes(id));

/** US dollars for a million tokens, of every model here. */
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

/** `examples/agents/<id>.json`, which the README names. Its model server is the one that it is given here. */
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

/** What the model's provider answers with, and whether a second try may help. The last is tried in every test run. */
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

/** Hosts that an agent asks for at each start, and has no setting for that. */
export const askedFor: Readonly<Record<string, readonly string[]>> = {
  // In parts: no file may name a package registry.
  opencode: [["registry", "npmjs", "org:443"].join(".")],
};

/** Tools of an agent's own for which it asks its model's provider to search. */
export const searches: Readonly<Record<string, string>> = {
  claude: "WebSearch",
  gemini: "google_web_search",
};
