import { expect, it } from "vitest";
import { demo, recordsOf, serve } from "./support/ambit.js";

it("a message reaches the demo agent in the middle of its turn, and is an event before what it does then", async () => {
  const server = await serve({});
  const lines = demo("say one", "hang", "say end");
  const response = await server.post("/stream", lines, { "idempotency-key": "steered" });
  const [forRecords, forText] = response.body?.tee() ?? [];
  const text = forText?.pipeThrough(new TextDecoderStream()).getReader();
  for (let said = ""; !said.includes('"one"'); ) said += (await text?.read())?.value ?? "";
  const sent = await server.post("/runs/steered/messages", { content: "say two\nrun echo three" });
  expect([sent.status, await sent.json()]).toEqual([200, { ok: true }]);
  const shown: unknown[] = [];
  for await (const record of recordsOf(new Response(forRecords))) {
    if (record.kind !== "event") continue;
    const { event } = record;
    if (event.type === "message_delta") shown.push(event.delta.trim());
    if (event.type === "data" && event.name === "user_message") shown.push(event.data);
    if (event.type === "tool_result") shown.push(String(event.output).trim());
  }
  expect(shown).toEqual(["one", { text: "say two\nrun echo three" }, "two", "three", "end"]);
});
