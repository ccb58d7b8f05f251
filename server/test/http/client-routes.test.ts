import { AmbitClient } from "@ambit/client";
import { requestSchemaWith } from "@ambit/core/contract";
import { expect, test } from "vitest";
import { openApiDocument } from "../../src/http/routes.js";

/** One call of each method of the client that asks the server something. */
const calls: Readonly<Record<string, (client: AmbitClient) => unknown>> = {
  run: (client) => client.run({ runId: "r" }).result,
  attach: (client) => client.attach("r").result,
  start: (client) => client.start({}),
  plan: (client) => client.plan({}),
  makeToken: (client) => client.makeToken({ sessionId: "s", ttlMs: 1_000, may: ["read"] }),
  runs: (client) => client.runs(),
  sessionRun: (client) => client.sessionRun("s"),
  runInfo: (client) => client.runInfo("r"),
  runRequest: (client) => client.runRequest("r"),
  deleteRun: (client) => client.deleteRun("r"),
  cancelRun: (client) => client.cancelRun("r"),
  sendMessage: (client) => client.sendMessage("r", "hello"),
  interactions: (client) => client.interactions(),
  answer: (client) => client.answer("r", "q", { approved: true }),
  files: (client) => client.files("r"),
  file: (client) => client.file("r", "a/b.txt"),
  archive: (client) => client.archive("r"),
  patch: (client) => client.patch("r"),
  bundle: (client) => client.bundle("r"),
  sessions: (client) => client.sessions(),
  closeSession: (client) => client.closeSession("s"),
  sessionFiles: (client) => client.sessionFiles("s"),
  sessionFile: (client) => client.sessionFile("s", "a/b.txt"),
  openTerminal: (client) => client.openTerminal("s"),
  takeSnapshot: (client) => client.takeSnapshot("s"),
  snapshots: (client) => client.snapshots(),
  snapshot: (client) => client.snapshot("n"),
  deleteSnapshot: (client) => client.deleteSnapshot("n"),
  exportSnapshot: (client) => client.exportSnapshot("n"),
  importSnapshot: (client) => client.importSnapshot(new Blob(["archive"])),
  deliveries: (client) => client.deliveries(),
  redeliver: (client) => client.redeliver("d"),
  usage: (client) => client.usage(),
  quotas: (client) => client.quotas(),
  plugins: (client) => client.plugins(),
  host: (client) => client.host(),
  health: (client) => client.health(),
  ready: (client) => client.ready(),
};

/** Methods that call others of the client, or a route that isn't of the API. */
const others = ["constructor", "eachRun", "eachInteraction", "eachDelivery", "signInLink"];

/** Routes without a method. */
const outside = [
  // For Prometheus, and for generators of clients.
  "GET /metrics",
  "GET /openapi.json",
  // For a platform that speaks a dialect: the client has `cancelRun` and `closeSession`.
  "GET /subscription-status",
  "POST /cancel",
  "POST /kill",
  // For the terminal that `openTerminal` returns.
  "POST /sessions/{sessionId}/terminals/{terminalId}",
];

const document: { readonly paths: Readonly<Record<string, object>> } = JSON.parse(
  JSON.stringify(openApiDocument("1.2.3", requestSchemaWith([]))),
);
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
);

/** The operation of a request. A path with a fixed segment comes before one with a parameter. */
function operationOf(method: string, path: string): string | undefined {
  const matching = operations.filter((operation) => {
    const template = operation.slice(operation.indexOf(" ") + 1).replaceAll(/\{path\}/g, ".+");
    return (
      operation.startsWith(`${method} `) &&
      new RegExp(`^${template.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(path)
    );
  });
  return matching.toSorted((a, b) => a.split("{").length - b.split("{").length)[0];
}

test("the client has a method for every route, and no other", async () => {
  const called = new Set<string | undefined>();
  for (const call of Object.values(calls)) {
    const refuse: typeof fetch = (input, init) => {
      called.add(operationOf(init?.method ?? "GET", new URL(String(input)).pathname));
      return Promise.resolve(Response.json({ ok: false }, { status: 400 }));
    };
    await Promise.resolve(call(new AmbitClient({ fetch: refuse }))).catch(() => undefined);
  }
  expect(called).not.toContain(undefined);
  expect(operations.filter((operation) => !called.has(operation)).toSorted()).toEqual(outside);
  const methods = Object.getOwnPropertyNames(AmbitClient.prototype);
  expect(methods.filter((name) => !others.includes(name)).toSorted()).toEqual(Object.keys(calls).toSorted());
});
