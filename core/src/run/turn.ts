import { type AgentEvent, type ContentBlock, pathBeyondDepth } from "../contract/index.js";
import { HarnessFailed, PluginBrokeContract } from "../errors.js";
import type { Agent } from "../plugin/index.js";
import { blamed } from "./attributed.js";
import { bounded } from "./bounded.js";
import { LinkedAbort, unlessAborted } from "./linked-abort.js";
import type { RunContext } from "./run-context.js";
import type { RunEvents } from "./run-events.js";
import type { ToolCalls } from "./tool-calls.js";

export interface TurnParts {
  readonly agent: Agent;
  readonly prompt: readonly ContentBlock[];
  readonly toolCalls: ToolCalls;
  readonly events: RunEvents;
  /** Aborts when the turn is to wait for the user. */
  readonly paused: AbortSignal;
}

/**
 * Prompts the agent and tells what it does, until its turn ends.
 * @throws the run's reason when it was aborted, and whatever ended the turn in place of its own end.
 */
export async function streamTurn(run: RunContext, parts: TurnParts): Promise<void> {
  const { scope, deadlines, limits, plan } = run;
  const { agent, prompt, toolCalls, paused } = parts;
  const who = `Harness '${plan.harness.actor.name}'`;
  scope.signal.throwIfAborted();
  using ended = new LinkedAbort(scope.signal, paused);
  deadlines.prompted();
  let done = false;
  try {
    const events = agent.prompt({
      prompt,
      signal: ended.signal,
      onPermission: (question) => toolCalls.answer(question),
    });
    for await (const event of bounded(events, ended.signal, limits.closeMs)) {
      deadlines.heard();
      done ||= event.type === "done";
      // A paused turn's end is ours to tell, after the results of its open calls.
      if (event.type === "done" && paused.aborted) continue;
      requireShallow(event, who);
      const completed = toolCalls.complete(event);
      const room = completed === undefined ? undefined : parts.events.push(completed);
      if (room !== undefined) await waitFor(room, run);
    }
  } catch (thrown) {
    throw blamed(who, thrown);
  }
  scope.signal.throwIfAborted();
  if (!done && !paused.aborted) throw new PluginBrokeContract(`${who} ended its turn without saying so.`);
}

/** What follows recurses: a stack that overflows there would say nothing of the agent that sent this. */
function requireShallow(event: AgentEvent, who: string): void {
  if (pathBeyondDepth(event) === undefined) return;
  throw new HarnessFailed(`${who} told a '${event.type}' with too many levels of lists and objects in it.`);
}

/** Waits for the reader: a slow one slows the agent, and doesn't make it an idle one. */
async function waitFor(room: Promise<void>, { deadlines, scope }: RunContext): Promise<void> {
  const release = deadlines.hold();
  try {
    await unlessAborted(scope.signal, () => room);
  } finally {
    release();
  }
}
