import { runRequestSchema } from "@ambit/core/contract";
import { calls } from "@ambit/fakes/harness";
import { describe, expect, it } from "vitest";
import { askedIn, inCallersTrace } from "../../src/parse/callers-trace.js";
import { createWorld } from "../fakes/world.js";

const [one, other] = ["a", "c"].map((digit) => `00-${digit.repeat(32)}-${"b".repeat(16)}-01`);

function read(propagation: object | undefined, headers: object) {
  const context = propagation === undefined ? {} : { context: { propagation } };
  const { request, warnings } = inCallersTrace(
    { request: runRequestSchema.parse({ messages: [], ...context }), warnings: [] },
    headers,
  );
  return { propagation: request.context?.propagation ?? {}, warned: warnings.map(({ path }) => path) };
}

describe("the caller's trace", () => {
  it.each<[string, object | undefined, object, object, string[]]>([
    ["none", undefined, {}, {}, []],
    [
      "of the headers",
      undefined,
      { traceparent: one, tracestate: "v=1", baggage: "k=v" },
      { traceparent: one, tracestate: "v=1", baggage: "k=v" },
      [],
    ],
    [
      "of the context before that of the headers",
      { traceparent: one },
      { traceparent: other, tracestate: "v=1" },
      { traceparent: one },
      [],
    ],
    [
      "of the context, with the headers' baggage",
      { traceparent: one, tracestate: "v=1" },
      { baggage: "k=v;p" },
      { traceparent: one, tracestate: "v=1", baggage: "k=v;p" },
      [],
    ],
    [
      "of a later version",
      undefined,
      { traceparent: `${one?.replace("00-", "cc-")}-more` },
      { traceparent: one },
      [],
    ],
    [
      "malformed in the headers",
      undefined,
      { traceparent: "nonsense", tracestate: "v=1" },
      {},
      ["traceparent"],
    ],
    [
      "malformed in the context, whatever the headers say",
      { traceparent: "00-1-2-01" },
      { traceparent: one },
      {},
      ["context.propagation.traceparent"],
    ],
    [
      "of zeros",
      { traceparent: `00-${"0".repeat(32)}-${"b".repeat(16)}-01` },
      {},
      {},
      ["context.propagation.traceparent"],
    ],
    ["of version 00 with a fifth field", undefined, { traceparent: `${one}-more` }, {}, ["traceparent"]],
    [
      "with a malformed tracestate",
      { traceparent: one, tracestate: "no" },
      {},
      { traceparent: one },
      ["context.propagation.tracestate"],
    ],
    [
      "with a tracestate that is too long",
      undefined,
      { traceparent: one, tracestate: `v=${"x".repeat(600)}` },
      { traceparent: one },
      ["tracestate"],
    ],
    ["with a tracestate alone", { tracestate: "v=1" }, {}, {}, ["context.propagation.tracestate"]],
    ["with an empty tracestate", { traceparent: one, tracestate: "" }, {}, { traceparent: one }, []],
    ["with malformed baggage", { baggage: "a=b\r\nx: y" }, {}, {}, ["context.propagation.baggage"]],
  ])("%s", (_what, propagation, headers, expected, warned) => {
    expect(read(propagation, headers)).toEqual({ propagation: expected, warned });
  });

  it("reads long headers in linear time", () => {
    const began = process.cpuUsage();
    read(undefined, { traceparent: one, tracestate: "a=".repeat(60_000), baggage: "a=b;".repeat(30_000) });
    read(undefined, { traceparent: one, tracestate: " ".repeat(512), baggage: `a=b;${" ".repeat(8_000)}` });
    read(undefined, { baggage: `a${" ".repeat(8_000)}` });
    expect(process.cpuUsage(began).user).toBeLessThan(1_000_000);
  });

  it("reaches the run's tools, and a malformed one is a warning on the result", async () => {
    const world = await createWorld({ script: calls("look_up", {}) });
    const seen: unknown[] = [];
    world.callback.behaviour.execute = async (_call, { traceparent, tracestate }) => {
      seen.push({ traceparent, tracestate });
      return { status: "completed", output: "" };
    };
    const customTools = [{ name: "look_up", permission: "allow", callRef: "ref" }];
    const good = { traceparent: one, tracestate: "v=1" };
    await world.run({ customTools, context: { propagation: good } });
    expect(seen).toEqual([good]);
    const { result } = await world.run({ customTools, context: { propagation: { traceparent: "00" } } });
    expect(result.warnings).toMatchObject([{ path: "context.propagation.traceparent" }]);
    expect(result.traceId).toBeUndefined();
  });
});

describe("what a refused request says of its trace", () => {
  const endpoint = "https://collector.example.com/";
  const asking = (count: number) => {
    const headers = Object.fromEntries(Array.from({ length: count }, (_, index) => [`h${index}`, "x"]));
    return { telemetry: { exporters: { otlp: { endpoint, headers } } }, unknown: true };
  };

  it("is read, unless it is so large that reading it would keep others waiting", () => {
    const few = asking(900);
    expect(askedIn(few).telemetry).toEqual(few.telemetry);
    expect(askedIn(asking(1_100)).telemetry).toBeUndefined();
    const context = { propagation: { traceparent: one } };
    expect(askedIn({ ...asking(1_100), context }).trace).toEqual({ traceparent: one });
  });
});
