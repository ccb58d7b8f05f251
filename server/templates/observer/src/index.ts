import { appendFile } from "node:fs/promises";
import { definePlugin, type ObservedRun, type RunObservation, type RunObserver } from "@ambit/core/plugin";
import { z } from "zod";

export const configSchema = z.strictObject({
  /** Where the lines go: one JSON object for each run that has ended. */
  file: z.string().min(1).default("runs.ndjson"),
});

/** Writes which tools each run called, what its boundary refused, and how it ended. */
export class Observer implements RunObserver {
  readonly name = "sample";
  #written: Promise<void> = Promise.resolve();

  constructor(readonly file: string) {}

  /**
   * All methods that a run calls are synchronous, and it waits for none. What they get is redacted, except for `request`,
   * which holds the caller's credentials: keep of it only what has gone through `redact`.
   */
  observe({ runId, harness, sandbox, log }: ObservedRun): RunObservation {
    const calls: string[] = [];
    const refused: string[] = [];
    return {
      happened: (event) => {
        if (event.type === "tool_call") calls.push(event.name ?? "");
        if (event.type === "boundary_decision" && !event.allowed) refused.push(event.target);
      },
      ended: ({ ok, stopReason, failure }) => {
        const line = { runId, harness, sandbox, calls, refused, ok, outcome: failure?.code ?? stopReason };
        // One after the other, so that lines don't mix.
        this.#written = this.#written
          .then(() => appendFile(this.file, `${JSON.stringify(line)}\n`, { mode: 0o600 }))
          .catch((error) => log.error({ error: String(error) }, "the line of a run could not be written"));
      },
    };
  }

  /** Called once, after the last run. */
  close(): Promise<void> {
    return this.#written;
  }
}

export default definePlugin({
  name: "ambit-sample",
  api: 1,
  config: configSchema,
  register: (registrar, { file }) => registrar.add("observer", new Observer(file)),
});
