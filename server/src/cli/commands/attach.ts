import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { type RunResult, type StreamRecord, streamRecordSchema } from "@ambit/core";
import { type PrinterOptions, printerFor } from "../display/record-printer.js";
import { exitCodeOf } from "../exit-codes.js";
import { pathOfRun, type RunOptions, ServerClient, ServerRefused } from "../server-client.js";
import { withRunMeant } from "../typed-id.js";

export type AttachOptions = RunOptions & PrinterOptions;

/** Consecutive connections without new records before it gives up, and milliseconds between them. */
const maxFruitlessAttempts = 10;
const pauseMs = 500;

/** `ambit attach`: follows a run from its beginning until its result. @param typed its id, or as much of it as is unique */
export async function attach(typed: string, options: AttachOptions): Promise<number> {
  const client = new ServerClient(options);
  return await withRunMeant(client, typed, options, (runId) => follow(client, runId, options));
}

/** A dropped connection is resumed. */
async function follow(client: ServerClient, runId: string, options: AttachOptions): Promise<number> {
  const printer = printerFor(options, process.stdout);
  let last = 0;
  let fruitless = 0;
  let wasReached = false;
  for (;;) {
    const before = last;
    try {
      const response = await client.send("GET", pathOfRun(runId, "events", options, { after: `${last}` }));
      wasReached = true;
      for await (const record of recordsOf(response)) {
        last += 1;
        if (record.kind === "event") await printer.event(record.event);
        else return await end(record.result);
      }
    } catch (error) {
      if (error instanceof ServerRefused && error.cause === undefined) throw error;
      if (!wasReached || fruitless >= maxFruitlessAttempts) throw error;
    }
    fruitless = last === before ? fruitless + 1 : 0;
    if (fruitless > maxFruitlessAttempts) throw new ServerRefused(`the log of run ${runId} breaks off`);
    await sleep(pauseMs);
  }

  async function end(result: RunResult): Promise<number> {
    await printer.result(result);
    return exitCodeOf(result.failure);
  }
}

/** Of a response in NDJSON. */
export async function* recordsOf({ body }: Response): AsyncGenerator<StreamRecord> {
  if (body === null) return;
  const lines = createInterface({ input: Readable.fromWeb(body), crlfDelay: Number.POSITIVE_INFINITY });
  // Blank lines keep a silent stream alive.
  for await (const line of lines) if (line !== "") yield streamRecordSchema.parse(JSON.parse(line));
}
