import type { LogLine, RunObserver } from "@ambit/core/plugin";
import { z } from "zod";

/** As `openLog` has pino write it. */
const lineSchema = z.looseObject({
  level: z.enum(["debug", "info", "warn", "error"]),
  time: z.iso.datetime(),
  msg: z.string().default(""),
});

/** Passes each line of the log on, as it was written, to the observers that take them. */
export class LineCopies {
  #takers: readonly Pick<RunObserver, "logged">[] = [];

  /** From now on. The log is there before the plugins are. */
  giveTo(observers: readonly RunObserver[]): void {
    this.#takers = observers.filter(({ logged }) => logged !== undefined);
  }

  /** @param line redacted JSON. Costs nothing where nobody takes it. */
  line(line: string): void {
    if (this.#takers.length === 0) return;
    const copy = readLine(line);
    if (copy === undefined) return;
    for (const taker of this.#takers) {
      try {
        taker.logged?.(copy);
      } catch {
        // It can't be logged: that line would be passed on, too.
      }
    }
  }
}

function readLine(line: string): LogLine | undefined {
  try {
    const { level, time, msg: message, ...fields } = lineSchema.parse(JSON.parse(line));
    return { level, at: Date.parse(time), message, fields };
  } catch {
    // A secret that was redacted across a quotation mark.
    return { level: "warn", at: Date.now(), message: line, fields: {} };
  }
}
