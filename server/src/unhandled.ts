import { messageOf, offerTitle, offerUnderWay } from "@ambit/core";
import type { Log } from "@ambit/core/plugin";
import type { Runner } from "@ambit/runner";

/** What becomes of errors that nothing handles, in a process that is Ambit's alone. */
export interface UnhandledErrors {
  /** Ends the process, or what it serves: going on isn't safe. */
  end(error: Error): void;
  /** Whether the process survives an error that isn't a plugin's. */
  readonly survives: boolean;
}

/**
 * From now on, an error that a plugin leaves unhandled ends that plugin's runs, by name. Only an error of what all runs share, or
 * before there is a runner, ends more.
 */
export class UnhandledErrorWatch {
  /** Set once it is there. */
  runner: Runner | undefined;

  constructor(
    readonly log: Log,
    readonly unhandled: UnhandledErrors,
  ) {
    process.on("uncaughtException", (error) => this.#handle(error, "uncaught exception"));
    process.on("unhandledRejection", (error) => this.#handle(error, "unhandled rejection"));
  }

  #handle(error: unknown, what: string): void {
    const { log, runner, unhandled } = this;
    const offer = offerUnderWay();
    if (offer === undefined) {
      if (unhandled.survives) log.error({ error }, what);
      else unhandled.end(error instanceof Error ? error : new Error(messageOf(error)));
      return;
    }
    if (runner?.faulted(offer, error) === true) return;
    const message = `${offerTitle(offer)} left an error unhandled (${messageOf(error)}): its author handles it, or remove the plugin`;
    unhandled.end(new Error(message, { cause: error }));
  }
}
