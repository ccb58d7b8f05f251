import { expect, it } from "vitest";
import { Terminals } from "../../src/http/sessions/terminals.js";
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

it("holds no more terminals than its operator allows, in all and of one project", async () => {
  const settings = { enabled: true, maxTerminals: 3, maxPerProject: 2, idleTimeoutMs: 60_000 };
  const terminals = new Terminals(settings);
  const end = Promise.withResolvers<void>();
  const open = (id: string, project: string) =>
    terminals.withPlace(id, { session: id, project }, () => end.promise);
  const opened = [open("a", "acme"), open("b", "acme")];
  await expect(open("c", "acme")).rejects.toThrow(
    "2 open terminals already (server.terminals.maxPerProject)",
  );
  opened.push(open("d", "other"));
  await expect(open("e", "third")).rejects.toThrow(
    "3 terminals are open already (server.terminals.maxTerminals)",
  );
  end.resolve();
  await Promise.all(opened);
  await open("f", "acme");
});
