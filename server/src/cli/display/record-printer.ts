import { once } from "node:events";
import type { AgentEvent, FailedResult, RunResult } from "@ambit/core";
import { Timeline } from "./timeline.js";

/** How a run is shown on stdout. */
export interface RecordPrinter {
  /** Whether the result carries the events, since they aren't printed before it. */
  readonly keepsEvents: boolean;
  /** Whether a program reads stdout: text for a person doesn't belong there. */
  readonly isForProgram: boolean;
  event(event: AgentEvent): Promise<void>;
  result(result: RunResult | FailedResult): Promise<void>;
}

export interface PrinterOptions {
  readonly stream?: boolean;
  readonly json?: boolean;
  readonly timeline?: boolean;
  /** A timeline whose receipt shows how its guarantees were proven. */
  readonly receipt?: boolean;
}

/** A timeline at a terminal; otherwise the one result, for a program to read. */
export function printerFor(options: PrinterOptions, output: NodeJS.WriteStream): RecordPrinter {
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
      event: (event) => line({ kind: "event", event }),
      result: (result) => line({ kind: "result", result }),
    };
  }
  if (options.timeline === true || options.receipt === true || (output.isTTY && options.json !== true)) {
    const timeline = new Timeline(performance.now(), options.receipt);
    return {
      keepsEvents: false,
      isForProgram: false,
      event: (event) => print(timeline.event(event, performance.now())),
      result: (result) => print(timeline.result(result, performance.now())),
    };
  }
  return { keepsEvents: true, isForProgram: true, event: async () => {}, result: line };
}
