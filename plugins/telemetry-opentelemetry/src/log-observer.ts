import type { LogLine, RunObserver } from "@ambit/core/plugin";
import type { LogExport } from "./export/log-export.js";
import type { Telemetry } from "./telemetry.js";

/** Lines that wait until the SDK is loaded; the first ones are written before it can be. */
const maxEarly = 1_000;

/** Exports the log. */
export class LogObserver implements RunObserver {
  readonly name = "opentelemetry-logs";
  #export: LogExport | undefined;
  #opening: Promise<LogExport> | undefined;
  #early: LogLine[] = [];
  #dropped = 0;

  constructor(readonly telemetry: Telemetry) {}

  observe(): undefined {}

  logged(line: LogLine): void {
    if (this.#export !== undefined) this.#export.add(line);
    else if (this.#early.length < maxEarly) this.#early.push(line);
    else this.#dropped += 1;
    void this.#opened();
  }

  async close(signal: AbortSignal): Promise<void> {
    await (await this.#opening)?.close(signal);
  }

  #opened(): Promise<LogExport> {
    this.#opening ??= Promise.all([this.telemetry.sdk(), import("./export/log-export.js")]).then(
      ([sdk, { LogExport }]) => {
        const opened = new LogExport(sdk);
        for (const line of this.#early) opened.add(line);
        opened.lost(this.#dropped);
        this.#early = [];
        this.#export = opened;
        return opened;
      },
    );
    return this.#opening;
  }
}
