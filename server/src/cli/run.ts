import { type FailedResult, isAmbitError, RunCancelled, type RunResult, secretsOf } from "@ambit/core";
import { takeEnvironment } from "../configuration/environment.js";
import type { Overrides } from "../configuration/load.js";
import { failedResult } from "../failed-result.js";
import { type Ambit, openAmbit } from "../open.js";
import { MalformedJson } from "../parse-json.js";
import { exitCodeOf, exitCodes } from "./exit-codes.js";
import { readRequest } from "./read-request.js";
import { printerFor, type RecordPrinter } from "./record-printer.js";
import { EndingSignals } from "./signals.js";

export interface RunCommandOptions extends Overrides {
  readonly stream?: boolean;
  readonly json?: boolean;
  readonly timeline?: boolean;
}

/** `ambit run`: one request in this process, its one result on stdout whatever happens. */
export async function run(file: string, options: RunCommandOptions): Promise<number> {
  const environment = takeEnvironment(process.env);
  const ambit = await openAmbit({ environment, overrides: options, logLevel: "warn" });
  const printer = printerFor(options, process.stdout);
  try {
    return await drive(ambit, printer, await readRequest(file));
  } catch (error) {
    // Before a run began; afterwards its own result tells of it.
    if (!isAmbitError(error) && !(error instanceof MalformedJson)) throw error;
    const result = failedResult(error);
    await printer.result(result);
    return exitCodeOf(result.failure);
  } finally {
    await ambit.runner.drain(0);
  }
}

async function drive({ runner, redaction }: Ambit, printer: RecordPrinter, body: unknown): Promise<number> {
  const run = await runner.reserve().admit(body, { keepsEvents: printer.keepsEvents });
  const reveal = redaction.hide(secretsOf(run.request));
  let interrupted: number | undefined;
  const signals = new EndingSignals();
  void signals.next().then((signal) => {
    interrupted = signal === "SIGINT" ? exitCodes.interrupted : exitCodes.terminated;
    run.cancel(new RunCancelled("The run was interrupted.", "caller"));
    // Whoever asks twice doesn't want to wait for the close: the next start cleans what is left.
    void signals.next().then(() => process.exit(interrupted));
  });
  let result: RunResult | FailedResult | undefined;
  for await (const record of run.records()) {
    if (record.kind === "event") await printer.event(record.event);
    else {
      result = record.result;
      await printer.result(record.result);
    }
  }
  reveal();
  return interrupted ?? exitCodeOf(result?.failure);
}
