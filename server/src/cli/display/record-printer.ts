import { once } from "node:events";
import type { Writable } from "node:stream";
import type { AgentEvent, EventRecord, FailedResult, RunResult, StageName } from "@ambit/core";
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
        const percent = receivedIn(event);
        const step = stepAfter(event);
        if (percent !== undefined) progress?.detail(`${percent} % received`);
        else if (step === undefined) progress?.end();
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

/** What a run is busy with before and after the agent's turn, where that takes long. */
const stages: Readonly<Partial<Record<string, string>>> = {
  opening: "opening the sandbox",
  filling: "filling the workspace",
  starting: "starting the agent",
  collecting: "collecting the outputs",
  closing: "closing the sandbox",
} satisfies Partial<Record<StageName, string>>;

/** How many percent of a source have arrived. */
function receivedIn(event: AgentEvent): number | undefined {
  const { percent } = event.type === "data" && event.name === "stage" ? Object(event.data) : {};
  return typeof percent === "number" ? percent : undefined;
}

/** What is being done after an event, while the agent doesn't say anything yet, or any more; undefined while it does. */
function stepAfter(event: AgentEvent): string | undefined {
  if (event.type === "turn" || (event.type === "data" && event.name === "run"))
    return "preparing the sandbox";
  if (event.type !== "data") return undefined;
  const { state, command, stage } = Object(event.data);
  if (event.name === "stage") return stages[String(stage)];
  if (event.name !== "setup") return undefined;
  if (state === "waiting") return "waiting for another run's setup";
  return state === "ended"
    ? "starting the agent"
    : `setting up${command === undefined ? "" : `: ${command}`}`;
}
