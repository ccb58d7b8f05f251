import { HarnessFailed, ModelFailed, PluginBrokeContract } from "@ambit/core";
import { type AgentEvent, type ContentBlock, pathBeyondDepth } from "@ambit/core/contract";
import type { Agent } from "@ambit/core/plugin";
import { bounded } from "../lifetime/bounded.js";
import { LinkedAbort, unlessAborted } from "../lifetime/linked-abort.js";
import { asPluginError } from "../lifetime/plugin-error.js";
import { cancelledByCaller } from "../outcome.js";
import type { RunContext } from "../run-context.js";
import type { TurnEnd } from "../run-state.js";
import type { ToolCalls } from "../tools/tool-calls.js";
import type { RunEvents } from "./run-events.js";
import type { TurnRecord } from "./turn-record.js";

export interface TurnParts {
  readonly agent: Agent;
  readonly prompt: readonly ContentBlock[];
  readonly toolCalls: ToolCalls;
  readonly events: RunEvents;
  /** Aborts when the turn is to wait for the user. */
  readonly paused: AbortSignal;
}

/**
 * Prompts the agent and tells what it does, until its turn ends. The end itself isn't told: the run has more to do.
 * @returns the agent's stop reason.
 * @throws the run's reason when it was aborted, and whatever ended the turn in place of its own end.
 */
export async function streamTurn(run: RunContext, parts: TurnParts): Promise<string | undefined> {
  const { scope, deadlines, limits, plan } = run;
  const { agent, prompt, toolCalls, paused } = parts;
  const who = `Harness '${plan.harness.actor.name}'`;
  scope.signal.throwIfAborted();
  using ended = new LinkedAbort(scope.signal, paused);
  deadlines.prompted();
  let done = false;
  let stopReason: string | undefined;
  try {
    const events = agent.prompt({
      prompt,
      signal: ended.signal,
      onPermission: (question) => toolCalls.answer(question),
    });
    for await (const event of bounded(events, ended.signal, limits.closeMs)) {
      deadlines.heard();
      if (event.type === "done") {
        done = true;
        stopReason = event.stopReason;
        continue;
      }
      requireShallow(event, who);
      for (const completed of toolCalls.events.complete(event)) {
        const room = parts.events.push(completed);
        if (room !== undefined) await waitFor(room, run);
      }
    }
    for (const held of paused.aborted ? [] : toolCalls.events.release()) parts.events.emit(held);
  } catch (thrown) {
    throw asPluginError(who, thrown);
  }
  scope.signal.throwIfAborted();
  if (!done && !paused.aborted) throw new PluginBrokeContract(`${who} ended its turn without saying so.`);
  return stopReason;
}

/**
 * An agent whose model gave it nothing may end its turn as if all were well.
 * @throws ModelFailed when it neither said nor did anything.
 */
export function requireOutput(
  { hasOutput }: TurnRecord,
  { acted }: ToolCalls,
  stopReason: string | undefined,
): void {
  if (hasOutput || acted || (stopReason !== undefined && stopReason !== "end_turn")) return;
  throw new ModelFailed(
    "The agent ended its turn without saying or doing anything: see its model's name, credential and quota.",
    { retryable: true },
  );
}

/** What a turn that didn't come to its own end leaves to be told. */
export function tellEnd(end: TurnEnd, events: RunEvents, toolCalls: ToolCalls): void {
  if (end.how === "completed") return;
  events.endBlocks();
  if (end.how === "failed" && !cancelledByCaller(end.failure)) {
    for (const event of toolCalls.events.release()) events.emit(event);
    events.emit({ type: "error", message: end.failure.message });
    return;
  }
  const why = end.how === "paused" ? "paused" : "interrupted";
  for (const event of toolCalls.events.settleOpen(why)) events.emit(event);
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
