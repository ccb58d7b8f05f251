import { once } from "node:events";
import type { Writable } from "node:stream";
import type { AgentEvent, EventRecord, FailedResult, RunResult } from "@ambit/core";
import type { Progress } from "./progress.js";
import { Timeline } from "./timeline.js";

/** How a run is shown on stdout. */
export interface RecordPrinter {
  /** Whether the result carries the events, since they aren't printed before it. */
  readonly keepsEvents: boolean;
  /** Whether a program reads stdout: text for a person doesn't belong there. */
  readonly isForProgram: boolean;
  event(record: EventRecord): Promise<void>;
  result(result: RunResult | FailedResult): Promise<void>;
}

export interface PrinterOptions {
  readonly stream?: boolean;
  readonly json?: boolean;
  readonly timeline?: boolean;
  /** A timeline whose receipt shows how its guarantees were proven. */
  readonly receipt?: boolean;
}

/**
 * A timeline at a terminal; otherwise the one result, for a program to read.
 * @param progress says what a timeline waits for before the agent begins. Default: nothing does.
 * @param isShown whether a timeline shows an event. Default: all of them.
 */
export function printerFor(
  options: PrinterOptions,
  output: Writable & { readonly isTTY?: boolean },
  progress?: Progress,
  isShown: (event: AgentEvent) => boolean = () => true,
): RecordPrinter {
  const print = async (text: string) => {
    // Its reader has closed the pipe: the caller stops.
    if (output.errored) throw output.errored;
    if (text !== "" && !output.write(text)) await once(output, "drain");
  };
  const line = (value: unknown) => print(`${JSON.stringify(value)}\n`);
  if (options.stream === true) {
    return {
      keepsEvents: false,
      isForProgram: true,
      event: line,
      result: (result) => line({ kind: "result", result }),
    };
  }
  if (options.timeline === true || options.receipt === true || (output.isTTY && options.json !== true)) {
    // A stored run took its time before it is read: what counts is when its events happened.
    let latestMs = Date.now();
    let timeline: Timeline | undefined;
    const timelineAt = (at: string | undefined) => {
      latestMs = at === undefined ? Date.now() : Date.parse(at);
      timeline ??= new Timeline(latestMs, options.receipt);
      return timeline;
    };
    return {
      keepsEvents: false,
      isForProgram: false,
      event: async ({ event, at }) => {
        progress?.clear();
        const begun = timelineAt(at);
        if (isShown(event)) await print(begun.event(event, latestMs));
        const step = stepAfter(event);
        if (step === undefined) progress?.end();
        else progress?.step(step);
      },
      result: (result) => {
        progress?.end();
        const begun = timeline ?? timelineAt(undefined);
        return print(begun.result(result, latestMs));
      },
    };
  }
  return { keepsEvents: true, isForProgram: true, event: async () => {}, result: line };
}

/** What is being done after an event, before the agent says anything; undefined once it does. */
function stepAfter(event: AgentEvent): string | undefined {
  if (event.type === "turn" || (event.type === "data" && event.name === "run"))
    return "preparing the sandbox";
  if (event.type !== "data" || event.name !== "setup") return undefined;
  const { state, command } = Object(event.data);
  if (state === "waiting") return "waiting for another run's setup";
  return state === "ended"
    ? "starting the agent"
    : `setting up${command === undefined ? "" : `: ${command}`}`;
}
