import { isDeepStrictEqual } from "node:util";
import {
  type Answer,
  followMarkers,
  type ModelServer,
  type ModelTurn,
  startModelServer,
} from "@ambit/model-server";
import { z } from "zod";
import type { LiveRun } from "./live-run.js";

const questionSchema = z.object({ toolCallId: z.string(), toolName: z.string(), input: z.unknown() });

export interface WantedCall {
  readonly tool: string;
  readonly input?: object;
}

/** The prompts that make an agent call tools, and the agent's part of a request. */
export interface TestAgent {
  readonly id: "demo" | "gemini" | "codex";
  /** Makes the calls in sequence. */
  prompt(...calls: readonly WantedCall[]): string;
  /** Makes the calls in parallel. */
  together(...calls: readonly WantedCall[]): string;
  /** The agent's part of a request. */
  readonly request: object;
  /** The scripted model, if the agent has one. */
  readonly model: ModelServer | undefined;
  close(): Promise<void>;
}

/** Rules that allow an agent's own tools. */
export const ownToolsAllowed = ["shell", "edit", "read", "fetch"].map((pattern) => ({
  pattern,
  permission: "allow",
}));

/** The key of agents with a model, to search for where it mustn't be. */
export const modelKey = "model-key-0b1f7c";

/** @param script of the model. Default: it follows the prompt's markers. */
export async function startAgent(
  id: TestAgent["id"],
  script: (turn: ModelTurn) => Answer | undefined = () => undefined,
): Promise<TestAgent> {
  if (id === "demo") return demo;
  const model = await startModelServer({
    expectedKey: modelKey,
    script: (turn) => script(turn) ?? followMarkers(turn),
  });
  const name = id === "gemini" ? "GEMINI_API_KEY" : "OPENAI_API_KEY";
  return {
    id,
    prompt: (...calls) => calls.map((call) => `[[${marker(call)}]]`).join(" "),
    together: (...calls) => `[[both ${calls.map(marker).join(" ;; ")}]]`,
    request: {
      harness: id,
      // It doesn't ask before it uses its own tools.
      ...(id === "codex" ? { permissions: { rules: ownToolsAllowed } } : {}),
      modelConnection: {
        endpoint: { baseUrl: id === "codex" ? `${model.url}/v1` : model.url },
        credentials: [{ binding: { kind: "environment", name }, value: modelKey }],
      },
    },
    model,
    close: () => model.close(),
  };
}

const demo: TestAgent = {
  id: "demo",
  prompt: (...calls) => calls.map(line).join("\n"),
  together: (...calls) => calls.map((call) => `& ${line(call)}`).join("\n"),
  request: { harness: "demo" },
  model: undefined,
  close: () => Promise.resolve(),
};

function marker({ tool, input = {} }: WantedCall): string {
  return `call ${tool} ${JSON.stringify(input)}`;
}

function line({ tool, input = {} }: WantedCall): string {
  return `call ${tool} ${JSON.stringify(input)}`;
}

/** The user's text, as the only message. */
export function asking(prompt: string): object {
  return { messages: [{ role: "user", content: prompt }] };
}

export interface GivenAnswer {
  readonly tool: string;
  readonly input?: object;
  readonly output: unknown;
}

/**
 * The next request's messages after a pause: the earlier messages, the parked calls with the user's answers, and the
 * new prompt.
 * @param paused the run that asked.
 */
export function answering(
  first: string,
  answers: readonly GivenAnswer[],
  next: string,
  paused: LiveRun,
): { messages: object[] } {
  const questions = paused.of("interaction_request").map(({ payload }) => questionSchema.parse(payload));
  const ids = answers.map(({ tool, input = {} }) => {
    const index = questions.findIndex(
      ({ toolName, input: asked }) => toolName === tool && isDeepStrictEqual(asked, input),
    );
    return questions.splice(index, 1)[0]?.toolCallId;
  });
  return {
    messages: [
      { role: "user", content: first },
      {
        role: "assistant",
        content: answers.map(({ tool, input = {} }, index) => ({
          type: "tool_call",
          toolCallId: ids[index],
          toolName: tool,
          input,
        })),
      },
      {
        role: "tool",
        content: answers.map(({ output }, index) => ({
          type: "tool_result",
          toolCallId: ids[index],
          output,
        })),
      },
      { role: "user", content: next },
    ],
  };
}
