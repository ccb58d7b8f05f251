import type { ServerResponse } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type Log, onDisconnectOf, type RunResult } from "@ambit/core";
import type { Run } from "@ambit/runner";
import { RecordWriter } from "./record-writer.js";
import { encodeEvent, encodeRecord, keepAlive, mediaTypes, type ResponseFormat } from "./response-format.js";
import { sendLargeJson } from "./send.js";

/** Characters of events that are written together; larger groups are sent at the reader's pace. */
const partLength = 65_536;

/** Drives the run for its caller, who may disconnect. Resolves with the result, whether or not it was sent. */
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
  using _alive = keepAlive(form, writer);
  let result: RunResult | undefined;
  let index = 0;
  let text = "";
  try {
    for (const event of run.announced()) {
      index += 1;
      text += encodeEvent(form, event, index);
    }
    void writer.write(text);
    text = "";
    // The run starts to work when these are sent.
    await nextTurn();
    for await (const part of run.parts()) {
      if ("result" in part) {
        result = part.result;
        text = encodeRecord(form, { kind: "result", result }, index + 1);
      } else {
        for (const event of part.events) {
          index += 1;
          text += encodeEvent(form, event, index);
          if (text.length < partLength) continue;
          await writer.write(text);
          text = "";
        }
      }
      const room = writer.write(text);
      text = "";
      if (room !== undefined) await room;
    }
  } finally {
    writer.end();
  }
  return result;
}
