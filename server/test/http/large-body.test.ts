import { expect, it } from "vitest";
import { saying } from "../support/scripted-agent.js";
import { asking, serveScript } from "../support/server.js";

const bytes = 15 * 1024 * 1024;
const filled = (value: string) => `[${value.repeat(bytes / value.length)}0]`;

it.each([
  ["lists", filled("[],"), "holds more than 100,000 values"],
  ["objects", filled("{},"), "holds more than 100,000 values"],
  ["a field of lists", `{"messages":${filled("[[]],")}}`, "holds more than 100,000 values"],
  ["levels", `${"[".repeat(bytes / 2)}${"]".repeat(bytes / 2)}`, "holds more than 8,192 levels"],
])("a body of 15 MiB of %s is refused before it is parsed", async (_what, body, message) => {
  const { post } = await serveScript(saying("x"));
  for (const path of ["/run", "/plan"]) {
    const refused = await post(path, body);
    expect(refused.status).toBe(413);
    expect(await refused.json()).toMatchObject({ error: expect.stringContaining(message) });
  }
});

it("a body of 15 MiB in one text, or of ten thousand messages, is accepted", async () => {
  const { post } = await serveScript(saying("x"));
  const text = { messages: [{ role: "user", content: "x".repeat(bytes) }] };
  expect((await post("/plan", text)).status).toBe(200);
  const [message] = asking.messages;
  expect((await post("/plan", { messages: Array(10_000).fill(message) })).status).toBe(200);
});

it("the API's description is made once", async () => {
  const { url } = await serveScript(saying("x"));
  const first = await (await fetch(`${url}/openapi.json`)).text();
  const begun = performance.now();
  for (let count = 0; count < 20; count += 1)
    expect(await (await fetch(`${url}/openapi.json`)).text()).toBe(first);
  const perResponse = (performance.now() - begun) / 20;
  const { openApiDocument } = await import("../../src/http/routes.js");
  const before = performance.now();
  for (let count = 0; count < 20; count += 1) JSON.stringify(openApiDocument("1"));
  // Compared with making it on the same machine, under the same load.
  expect(perResponse).toBeLessThan((performance.now() - before) / 20);
});
