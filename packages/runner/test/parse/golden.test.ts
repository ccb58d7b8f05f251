import {
  agentEventSchema,
  failedResultSchema,
  failureCodeSchema,
  planResponseSchema,
  runResultSchema,
  type StreamRecord,
  streamRecordSchema,
} from "@ambit/core/contract";
import { describe, expect, test } from "vitest";
import type { z } from "zod";
import { parseRunRequest } from "../../src/parse/parse.js";
import { golden, goldenNames, goldenText } from "./golden-files.js";

/** Those of the reference are read, and tested, by its dialect. */
const requests = goldenNames("request-").filter((name) => name !== "request-older-spellings");

describe("requests", () => {
  test.each(requests)("%s parses", (name) => {
    expect(parseRunRequest(golden(name))).toMatchObject({ ok: true });
  });
});

describe("answers", () => {
  test.each<[name: string, schema: z.ZodType]>([
    ["result-full", runResultSchema],
    ["result-paused", runResultSchema],
    ["stream", streamRecordSchema.array()],
    ["failures", failedResultSchema.array()],
    ["plan-accepted", planResponseSchema],
  ])("%s is as the schema says, with nothing besides", (name, schema) => {
    expect(schema.parse(golden(name))).toEqual(golden(name));
  });

  test("every golden file is tested, here or with the server's routes", () => {
    const looked = [...requests, "result-full", "result-paused", "stream", "failures", "plan-accepted"];
    looked.push(
      "request-older-spellings",
      ...goldenNames("reference-request-"),
      "plugins",
      "health",
      "kill",
      "ended",
      "reference-result-ok",
      "reference-result-error",
    );
    expect(goldenNames("").sort()).toEqual(looked.sort());
  });

  test("there is an event of every type", () => {
    const { events } = runResultSchema.parse(golden("result-full"));
    const types = agentEventSchema.options.map((option) => option.shape.type.value);
    expect(new Set(events.map(({ type }) => type))).toEqual(new Set(types));
  });

  test("there is a failure of every code", () => {
    const failures = failedResultSchema.array().parse(golden("failures"));
    expect(failures.map(({ failure }) => failure.code).sort()).toEqual([...failureCodeSchema.options].sort());
  });

  test("a stream ends with its one result, which repeats no event", () => {
    const records: StreamRecord[] = streamRecordSchema.array().parse(golden("stream"));
    expect(records.map(({ kind }) => kind)).toEqual(["event", "event", "event", "event", "result"]);
    expect(records.at(-1)).toMatchObject({ result: { events: [] } });
  });

  test("a result of the Agenta runner is valid, except for its number and a typeless event", () => {
    const reference = golden("reference-result-ok") as { events: { type?: string }[] };
    const events = reference.events.filter(({ type }) => type !== undefined);
    const ours = { ...reference, events, runId: "run-1" };
    expect(runResultSchema.parse(ours)).toEqual(ours);
  });

  test("so is its error, to which Ambit's adds details", () => {
    const ours = {
      ...(golden("reference-result-error") as object),
      failure: { code: "model_failed", retryable: false },
    };
    expect(failedResultSchema.parse(ours)).toEqual(ours);
  });
});

test.each(goldenNames(""))("%s ends in a line break", (name) => {
  expect(goldenText(name)).toMatch(/[^\n]\n$/);
});
