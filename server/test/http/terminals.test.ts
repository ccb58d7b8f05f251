import { expect, it } from "vitest";
import { saying } from "../support/scripted-agent.js";
import { serveScript } from "../support/server.js";

const path = "/sessions/kept/terminals";

it("opens no terminal unless its operator allows it, and says what a shell passes by", async () => {
  const { post } = await serveScript(saying("x"));
  const refused = await post(path, {});
  expect(refused.status).toBe(403);
  expect(await refused.json()).toMatchObject({
    error: expect.stringMatching(/server\.terminals\.enabled.*passes by the permissions/),
    failure: { code: "unauthorized" },
  });
  // The control: where it is allowed, what is missing is the session.
  const allowing = await serveScript(saying("x"), {
    configuration: { server: { terminals: { enabled: true } } },
  });
  expect((await allowing.post(path, {})).status).toBe(404);
});

it.each([
  ["a size that no screen has", path, { columns: 0 }, "columns"],
  ["an input of no text", `${path}/none`, {}, "needs input, or columns and rows"],
  ["half a size", `${path}/none`, { columns: 80 }, "columns and rows belong together"],
  ["a long input", `${path}/none`, { input: "x".repeat(65_537) }, "input"],
])("refuses %s", async (_what, where, body, named) => {
  const configuration = { server: { terminals: { enabled: true } } };
  const { post } = await serveScript(saying("x"), { configuration });
  const refused = await post(where, body);
  expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining(named)]);
});
