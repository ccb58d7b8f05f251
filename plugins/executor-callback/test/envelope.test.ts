import { describe, expect, it } from "vitest";
import { outcomeOfEnvelope } from "../src/call.js";
import { call, executorOf } from "./calls.js";
import { answerWith, startPlatform } from "./platform.js";

describe("the request", () => {
  it("is the reference's envelope, with the authorization verbatim", async () => {
    const platform = await startPlatform(answerWith("sunny"));
    const outcome = await call({
      endpoint: `${platform.origin}/api/tools/call?team=1`,
      given: { city: "Bern", nested: { héé: [1, null] } },
      request: { runContext: { run: { kind: "test" } } },
    });
    expect(outcome).toEqual({ status: "completed", output: "sunny" });
    const [received] = platform.received;
    expect(received?.method).toBe("POST");
    expect(received?.url).toBe("/api/tools/call?team=1");
    expect(received?.headers).toMatchObject({
      authorization: "Access tok-123",
      "content-type": "application/json",
      "x-agenta-run-kind": "test",
    });
    expect(received?.body).toBe(
      '{"data":{"id":"call-1","type":"function","function":{"name":"tools__weather","arguments":{"city":"Bern","nested":{"héé":[1,null]}}}}}',
    );
  });

  it("names its run, its owner and the call, for a platform that acts once", async () => {
    const platform = await startPlatform();
    await call({ endpoint: `${platform.origin}/tools/call`, fence: 2 });
    await call({ endpoint: `${platform.origin}/tools/call` });
    const [first, second] = platform.received.map(({ headers }) => headers);
    expect(first).toMatchObject({
      "x-ambit-run-id": "run-1",
      "x-ambit-fence": "2",
      "idempotency-key": "key-1",
    });
    // Nobody else can take this run over.
    expect(Object.keys(second ?? {})).not.toContain("x-ambit-fence");
  });

  it("has the runner's context beside the model's arguments, which can't set it", async () => {
    const platform = await startPlatform(answerWith("sunny"));
    const endpoint = `${platform.origin}/tools/call`;
    await call({ endpoint, given: { context: { connection: "evil" } }, context: { connection: "own" } });
    const body = JSON.parse(platform.received[0]?.body ?? "{}");
    expect(body.context).toEqual({ connection: "own" });
    expect(body.data.function.arguments).toEqual({ context: { connection: "evil" } });
  });

  it("has no header without a value in the request", async () => {
    const platform = await startPlatform();
    const endpoint = `${platform.origin}/tools/call`;
    await call({ endpoint, request: { toolCallback: { endpoint } } });
    expect(Object.keys(platform.received[0]?.headers ?? {})).not.toContain("authorization");
    expect(Object.keys(platform.received[0]?.headers ?? {})).not.toContain("x-agenta-run-kind");
  });

  it("returns each short call's own result, over kept-alive connections", async () => {
    const platform = await startPlatform((request, response) => {
      const { data } = JSON.parse(request.body);
      answerWith(String(data.function.arguments.n))(request, response);
    });
    const executor = executorOf({});
    const endpoint = `${platform.origin}/tools/call`;
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, (_, n) => call({ endpoint, executor, given: { n } })),
    );
    expect(outcomes.map(({ status }) => status)).toEqual(Array(50).fill("completed"));
    expect(outcomes.map((outcome) => "output" in outcome && outcome.output)).toEqual(
      Array.from({ length: 50 }, (_, n) => String(n)),
    );
    const opened = platform.connections();
    for (let n = 0; n < 20; n += 1) await call({ endpoint, executor, given: { n } });
    expect(platform.connections()).toBe(opened);
  });
});

describe("the answer", () => {
  const ok = (content: unknown) =>
    JSON.stringify({ call: { status: { code: "STATUS_CODE_OK" }, data: { content } } });
  const error = (message: unknown, content?: unknown) =>
    JSON.stringify({ call: { status: { code: "STATUS_CODE_ERROR", message }, data: { content } } });

  it.each([
    ["a string as it is", ok('{"a": 1}'), "completed", '{"a": 1}'],
    ["an empty string", ok(""), "completed", ""],
    ["an object as JSON", ok({ a: [1] }), "completed", '{"a":[1]}'],
    ["a number", ok(0), "completed", "0"],
    ["false", ok(false), "completed", "false"],
    ["null: the body itself", ok(null), "completed", ok(null)],
    ["no envelope: the body itself", '{"temperature":3}', "completed", '{"temperature":3}'],
    ["no JSON: the body itself", "<p>sunny", "completed", "<p>sunny"],
    ["an empty body", "", "completed", ""],
    [
      "an inherited key is no envelope",
      '{"__proto__":{"call":{"data":{"content":"x"}}}}',
      "completed",
      '{"__proto__":{"call":{"data":{"content":"x"}}}}',
    ],
    [
      "too many values: a failure, since it may be one",
      `{"call":{"data":{"content":[${"{},".repeat(60_000)}0]}}}`,
      "failed",
      "Tool 'weather' failed: its answer holds more than 100,000 values (executor-callback's maxAnswerValues). Request less: filter, paginate or summarise.",
    ],
    ["an error with a message", error("no such city"), "failed", "Tool 'weather' failed: no such city"],
    ["an error with content", error(null, "try 'Bern'"), "failed", "Tool 'weather' failed\ntry 'Bern'"],
    ["an error with both", error("bad", { hint: 1 }), "failed", "Tool 'weather' failed: bad\n{\"hint\":1}"],
    ["an error with nothing", error(undefined), "failed", "Tool 'weather' failed"],
  ])("%s", (_what, body, status, output) => {
    expect(outcomeOfEnvelope("weather", body)).toEqual({ status, output });
  });
});
