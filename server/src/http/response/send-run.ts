import type { ServerResponse } from "node:http";
import { type Log, onDisconnectOf, type RunResult } from "@ambit/core";
import type { Run } from "@ambit/runner";
import { RecordWriter } from "./record-writer.js";
import { encodeRecord, mediaTypes, type ResponseFormat } from "./response-format.js";
import { sendLargeJson } from "./send.js";

/** Proxies cut a connection on which nothing moves; a comment is not a record, and readers skip it. */
const heartbeatMs = 15_000;

/** Drives the run for its caller, who may leave. Resolves with the result, sent or not. */
export async function sendRun(
  run: Run,
  form: ResponseFormat,
  response: ServerResponse,
  log: Log,
): Promise<RunResult | undefined> {
  const leave = () => {
    if (response.writableFinished) return;
    log.info({ runId: run.id, onDisconnect: onDisconnectOf(run.request) }, "the caller left");
    run.leave();
  };
  response.once("close", leave);
  if (response.destroyed) leave();
  return form === "json" ? sendOnce(run, response) : stream(run, form, response);
}

async function sendOnce(run: Run, response: ServerResponse): Promise<RunResult | undefined> {
  for await (const record of run.records()) {
    if (record.kind !== "result") continue;
    const failure = record.result.ok ? undefined : await run.ended;
    await sendLargeJson(response, failure?.status ?? 200, record.result, { "x-ambit-run-id": run.id });
    return record.result;
  }
  return undefined;
}

async function stream(
  run: Run,
  form: Exclude<ResponseFormat, "json">,
  response: ServerResponse,
): Promise<RunResult | undefined> {
  response.writeHead(200, {
    "content-type": mediaTypes[form],
    "cache-control": "no-store",
    // nginx buffers responses without this header.
    "x-accel-buffering": "no",
    "x-ambit-run-id": run.id,
  });
  const writer = new RecordWriter(response);
  const beats =
    form === "events"
      ? setInterval(() => writer.idle && writer.write(": running\n\n"), heartbeatMs)
      : undefined;
  let result: RunResult | undefined;
  let index = 0;
  try {
    for await (const record of run.records()) {
      index += 1;
      if (record.kind === "result") result = record.result;
      const room = writer.write(encodeRecord(form, record, index));
      if (room !== undefined) await room;
    }
  } finally {
    clearInterval(beats);
    writer.end();
  }
  return result;
}
