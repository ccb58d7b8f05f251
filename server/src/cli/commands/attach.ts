import { AmbitError, type Run } from "@ambit/client";
import { type PrinterOptions, printerFor, type RecordPrinter } from "../display/record-printer.js";
import { exitCodeOf } from "../exit-codes.js";
import { connect, type RunOptions } from "../server-client.js";
import { withRunMeant } from "../typed-id.js";

export type AttachOptions = RunOptions & PrinterOptions;

/** `ambit attach`: follows a run from its beginning until its result. @param typed its id, or as much of it as is unique */
export async function attach(typed: string, options: AttachOptions): Promise<number> {
  const client = connect(options);
  const runId = await withRunMeant(client, typed, async (id) => {
    await client.runInfo(id);
    return id;
  });
  return await print(
    client.attach(runId, { reconnectTimeoutMs: 10_000 }),
    printerFor(options, process.stdout),
  );
}

/** Prints a run of a server to its end. Returns the exit code. @throws AmbitError if it can't be followed to its result */
export async function print(run: Run, printer: RecordPrinter): Promise<number> {
  try {
    for await (const record of run.records()) await printer.event(record);
    await printer.result(await run.result);
    return exitCodeOf(undefined);
  } catch (error) {
    if (!(error instanceof AmbitError) || error.result === undefined || error.status === 401) throw error;
    await printer.result(error.result);
    return exitCodeOf(error.result.failure);
  }
}
