import { PassThrough } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import { eventRecord } from "@ambit/core/contract";
import { expect, it } from "vitest";
import { printerFor } from "../../../src/cli/display/record-printer.js";

it("shows when events happened, not when a stored run is read", async () => {
  const output = new PassThrough();
  const printer = printerFor({ timeline: true }, output);
  const began = Date.parse("2026-01-01T00:00:00Z");
  await printer.event(eventRecord({ type: "data", name: "run", data: {} }, began));
  await printer.event(eventRecord({ type: "message", text: "late" }, began + 75_000));
  await printer.result({ ok: true, runId: "r", events: [] });
  output.end();
  const text = stripVTControlCharacters((await output.toArray()).join(""));
  expect(text).toMatch(/^ +75\.00 s +says +late$/m);
});
