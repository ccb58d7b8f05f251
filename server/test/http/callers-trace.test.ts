import type { RunResult } from "@ambit/core";
import { describe, expect, it } from "vitest";
import { saying } from "../support/scripted-agent.js";
import { asking, bodyOf, recordsOf, serveScript } from "../support/server.js";

const traceId = "a".repeat(32);
const traceparent = `00-${traceId}-${"b".repeat(16)}-01`;

describe("the trace context in the headers of a request", () => {
  it("is continued, and a malformed one gives a warning on the result", async () => {
    const { post } = await serveScript(saying("x"));
    const headers = { traceparent, tracestate: "vendor=1", baggage: "team=blue" };
    const continued = await bodyOf<RunResult>(await post("/run", asking, headers));
    expect(continued).toMatchObject({ ok: true, traceId });
    expect(continued.warnings).toBeUndefined();
    const refused = await bodyOf<RunResult>(await post("/run", asking, { traceparent: "00-zz-1-01" }));
    expect(refused).toMatchObject({ ok: true, warnings: [{ path: "traceparent" }] });
    expect((await recordsOf(await post("/stream", asking, headers))).at(-1)).toMatchObject({
      result: { traceId },
    });
  });
});
