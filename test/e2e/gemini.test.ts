import { startModelServer } from "@ambit/model-server";
import { describe, expect, it } from "vitest";
import { allOf, ndjson, recordsOf, serve } from "./support/ambit.js";
import { callbackServer, callbackTool } from "./support/callback-server.js";

describe("Gemini CLI", () => {
  it("calls a callback tool end to end, with no key and no route to its model inside", {
    timeout: 90_000,
  }, async () => {
    await using model = await startModelServer({ expectedKey: "test-key-123" });
    const platform = await callbackServer((_name, { key }) => ({ [String(key)]: 42 }));
    const { post } = await serve();
    const response = await post(
      "/run",
      {
        harness: "gemini",
        messages: [{ role: "user", content: '[[say Let me look.]] [[call lookup {"key":"alpha"}]]' }],
        customTools: [
          callbackTool("lookup", {
            description: "Looks a key up.",
            inputSchema: { type: "object", properties: { key: { type: "string" } }, required: ["key"] },
          }),
        ],
        toolCallback: { endpoint: platform.endpoint },
        modelConnection: {
          provider: "google",
          endpoint: { baseUrl: model.url },
          credentials: [{ binding: { kind: "environment", name: "GEMINI_API_KEY" }, value: "test-key-123" }],
        },
      },
      ndjson,
    );
    const records = await allOf(recordsOf(response));
    const last = records.at(-1);
    expect(last).toMatchObject({ kind: "result", result: { ok: true } });
    expect(platform.calls).toMatchObject([{ name: "ref__lookup", arguments: { key: "alpha" } }]);
    const events = records.flatMap((record) => (record.kind === "event" ? [record.event] : []));
    expect(events).toContainEqual(expect.objectContaining({ type: "tool_call", name: "lookup" }));
    expect(last).toMatchObject({
      result: {
        output: expect.stringContaining("42"),
        receipt: {
          visibleCredentials: [],
          credentials: [{ name: "GEMINI_API_KEY", hosts: ["127.0.0.1"], by: "route" }],
          actors: expect.arrayContaining([
            expect.objectContaining({
              kind: "gateway",
              assurance: "mediated",
              subjects: [new URL(model.url).host],
            }),
          ]),
        },
      },
    });
    expect(JSON.stringify(records)).not.toContain("test-key-123");
    const answered = await model.waitFor(({ toolResults }) => toolResults.length === 1);
    expect(answered.credentials).toEqual(["test-key-123"]);
  });
});
