import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Agent, AgentEvent, Harness, StartScope, Turn } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { harnessChecks } from "../src/harness/checks.js";
import { HarnessStage } from "../src/harness/harness-stage.js";

type Prompt = (turn: Turn, workspace: string) => AsyncIterable<AgentEvent>;

const textOf = ({ prompt }: Turn) => prompt.map(({ text = "" }) => text).join("");

/** Does what the kit's agent does, without a process. */
async function* honest(turn: Turn, workspace: string): AsyncIterable<AgentEvent> {
  const [verb, ...words] = textOf(turn).split(" ");
  const text = words.join(" ");
  if (verb === "write") {
    const input = { path: text };
    const decision = await turn.onPermission({ toolCallId: "1", toolName: "write", input });
    if (decision === "allow") await writeFile(join(workspace, text), "");
  } else yield { type: "message", text };
  yield { type: "done" };
}

function harnessOf(prompt: Prompt): Harness {
  const agentIn = ({ sandbox }: StartScope): Agent => ({
    conversation: "one",
    history: "new",
    capabilities: {
      textMessages: true,
      images: false,
      fileAttachments: false,
      mcpTools: false,
      toolCalls: true,
      reasoning: false,
      planMode: false,
      permissions: true,
      usage: false,
      streamingDeltas: false,
      sessionLifecycle: false,
    },
    evidence: {},
    prompt: (turn) => prompt(turn, sandbox.workspace),
    ended: () => false,
    close: async () => {},
  });
  return {
    name: "canned",
    id: "canned",
    aliases: [],
    site: "sandbox",
    claims: [],
    supportsPermissionRequests: true,
    maxToolCallMs: 1_000,
    touches: () => [],
    gaps: () => [],
    issues: () => [],
    probe: async () => [],
    requiredPaths: () => [],
    visibleCredentials: () => [],
    start: async (scope) => agentIn(scope),
  };
}

async function outcomeOf(title: string, prompt: Prompt): Promise<"passes" | "is caught"> {
  const found = harnessChecks.find((one) => one.title === title);
  if (found === undefined) throw new Error(`there is no check '${title}'`);
  const stage = await HarnessStage.open(() => harnessOf(prompt), found.script);
  try {
    return await found.check(stage).then(
      () => "passes",
      () => "is caught",
    );
  } finally {
    await stage.close();
  }
}

const asSaid = "passes on the agent's output in order, and ends the turn with one done event";
const asAsked = "asks for permission before one of the agent's own tools acts, and passes on an approval";
const asDenied = "passes on a denial: the tool doesn't act";
const asParked = "parks a call without allowing it";

async function* allowsAll(turn: Turn, workspace: string): AsyncIterable<AgentEvent> {
  yield* honest(
    { ...turn, onPermission: async (question) => (await turn.onPermission(question)) && "allow" },
    workspace,
  );
}

async function* parkedIsAllowed(turn: Turn, workspace: string): AsyncIterable<AgentEvent> {
  const lenient = async (question: Parameters<Turn["onPermission"]>[0]) => {
    const decision = await turn.onPermission(question);
    return decision === "park" ? "allow" : decision;
  };
  yield* honest({ ...turn, onPermission: lenient }, workspace);
}

async function* neverAsks(turn: Turn, workspace: string): AsyncIterable<AgentEvent> {
  yield* honest({ ...turn, onPermission: async () => "allow" }, workspace);
}

async function* without(
  type: AgentEvent["type"],
  events: AsyncIterable<AgentEvent>,
): AsyncIterable<AgentEvent> {
  for await (const event of events) if (event.type !== type) yield event;
}

async function* followedBy(events: AsyncIterable<AgentEvent>, last: AgentEvent): AsyncIterable<AgentEvent> {
  yield* events;
  yield last;
}

async function* precededBy(first: AgentEvent, events: AsyncIterable<AgentEvent>): AsyncIterable<AgentEvent> {
  yield first;
  yield* events;
}

describe("a careless harness", () => {
  it.each([asSaid, asAsked, asDenied, asParked])("the control passes: %s", async (title) => {
    expect(await outcomeOf(title, honest)).toBe("passes");
  });

  it.each<[what: string, title: string, prompt: Prompt]>([
    ["that drops the agent's output", asSaid, (turn, place) => without("message", honest(turn, place))],
    ["that ends a turn without a done event", asSaid, (turn, place) => without("done", honest(turn, place))],
    ["that ends a turn twice", asSaid, (turn, place) => followedBy(honest(turn, place), { type: "done" })],
    [
      "that reports a result without its call",
      asSaid,
      (turn, place) => precededBy({ type: "tool_result", id: "1" }, honest(turn, place)),
    ],
    [
      "that leaves a block of text open",
      asSaid,
      (turn, place) => precededBy({ type: "message_start", id: "1" }, honest(turn, place)),
    ],
    ["that doesn't ask", asAsked, neverAsks],
    ["that ignores a denial", asDenied, allowsAll],
    ["that treats a parked call as allowed", asParked, parkedIsAllowed],
  ])("%s is caught", async (_what, title, prompt) => {
    expect(await outcomeOf(title, prompt)).toBe("is caught");
  });
});
