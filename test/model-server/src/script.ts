import { type Answer, chunksOf, type MessageAnswer, say } from "./answer.js";
import { type Marker, MarkerError, parseMarkers } from "./markers.js";
import type { ModelTurn } from "./turn.js";

/**
 * Decides every response. Each request takes the next entry of a list, or calls the function with its number, from 0.
 * An agent's own requests, such as for a title, count too.
 */
export type Script = readonly Answer[] | ((turn: ModelTurn, index: number) => Answer | Promise<Answer>);

/** The model's response to a prompt without markers. */
export const PLAIN_TEXT = "Hello from the scripted model.";

/**
 * The default script. It keeps no state: the markers of the last user text are the plan, and the number of tool results
 * since then is the progress.
 */
export function followMarkers(turn: ModelTurn): Answer {
  let markers: readonly Marker[];
  try {
    markers = parseMarkers(turn.lastUserText);
  } catch (error) {
    if (error instanceof MarkerError) return say(`SCRIPT ERROR: ${error.message}`);
    throw error;
  }
  if (markers.length === 0) return say(PLAIN_TEXT);
  let resultsLeft = turn.toolResults.length;
  for (const step of stepsOf(markers)) {
    // A call that the response ends within isn't made.
    const isMade = step.kind === "message" && step.end === undefined;
    const callCount = isMade ? (step.calls?.length ?? 0) : 0;
    if (callCount === 0 || resultsLeft < callCount) return step;
    resultsLeft -= callCount;
  }
  return say(`FINAL: ${turn.toolResults.at(-1)?.text ?? ""}`);
}

/**
 * One step is one response of the model. An agent ends its turn at a response without a tool call, so text is in the
 * same response as the calls that follow it.
 */
function stepsOf(markers: readonly Marker[]): readonly Answer[] {
  const steps: Answer[] = [];
  let open: MessageAnswer = { kind: "message" };
  const close = (last: Answer) => {
    steps.push(last);
    open = { kind: "message" };
  };
  for (const marker of markers) {
    switch (marker.verb) {
      case "think":
        open = { ...open, thought: `${open.thought ?? ""}${marker.text}` };
        break;
      case "say":
        open = { ...open, chunks: [...(open.chunks ?? []), ...chunksOf(marker.text)] };
        break;
      case "slow":
        open = { ...open, chunks: [...(open.chunks ?? []), ...ticks(marker.count)], pauseMs: marker.pauseMs };
        break;
      case "call":
        close({ ...open, calls: marker.calls });
        break;
      case "cut":
      case "limit": {
        const end = marker.verb === "cut" ? "cut" : "max_tokens";
        close({ ...open, calls: marker.calls, end });
        break;
      }
      case "http":
        close({ kind: "http", status: marker.status });
        break;
      case "hang":
      case "drop":
        close({ kind: marker.verb });
        break;
    }
  }
  if (open.thought !== undefined || open.chunks !== undefined) steps.push(open);
  return steps;
}

function ticks(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `tick ${index + 1} `);
}

/** A script as a function. @throws if a list has no more responses. */
export function scriptFunction(script: Script | undefined): (turn: ModelTurn) => Promise<Answer> {
  if (script === undefined) return async (turn) => followMarkers(turn);
  let index = 0;
  if (typeof script === "function") return async (turn) => script(turn, index++);
  return async () => {
    const answer = script[index++];
    if (answer === undefined) {
      throw new Error(`The script has ${script.length} answers and this is request ${index}: add an answer.`);
    }
    return answer;
  };
}
