import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "@ambit/store-postgres";
import { postgresIsMissing, startPostgres } from "@ambit/test-postgres";
import { execa } from "execa";
import { describe, expect, it, onTestFinished } from "vitest";
import { saying } from "../support/scripted-agent.js";
import { asking } from "../support/server.js";
import { serveStored } from "../support/stored-server.js";
import { unsteadyStore } from "../support/unsteady-store.js";

const detached = { prefer: "respond-async" };
const settings = { store: { answerTimeoutMs: 300, retryTimeoutMs: 20_000 }, server: { drainMs: 10 } };

/** Every route that asks the store. The first are a caller's, and those before them an operator's. */
const requests: readonly (readonly [method: string, path: string, body?: unknown])[] = [
  ["GET", "/runs"],
  ["GET", "/runs?after=one"],
  ["GET", "/runs/one"],
  ["GET", "/runs/one/events"],
  ["DELETE", "/runs/one"],
  ["POST", "/runs/one/cancel"],
  ["POST", "/runs/one/interactions/two", { approved: true }],
  ["GET", "/interactions"],
  ["GET", "/sessions"],
  ["DELETE", "/sessions/one"],
  ["GET", "/deliveries"],
  ["POST", "/run", asking],
  ["POST", "/run", { ...asking, runId: "two" }],
  ["POST", "/run", { ...asking, sessionId: "three" }],
];

function send(url: string, [method, path, body]: (typeof requests)[number], headers = {}) {
  return fetch(`${url}${path}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

describe.each(["fails", "hangs"] as const)("while the store %s", (how) => {
  it("every route that needs it answers 503, in time, and is well again afterwards", {
    timeout: 60_000,
  }, async () => {
    const { state, plugin } = await unsteadyStore();
    const { url, get, post } = await serveStored(saying("x"), { store: plugin, configuration: settings });
    expect((await post("/run", { ...asking, runId: "one" })).status).toBe(200);
    expect(await (await get("/ready")).json()).toEqual({ status: "ready", store: "reachable" });
    state.how = how;
    for (const request of requests) {
      const response = await send(url, request);
      const what = request.slice(0, 2).join(" ");
      expect([what, response.status, response.headers.get("retry-after")]).toEqual([what, 503, "1"]);
      expect(await response.json()).toMatchObject({ failure: { code: "store_failed", retryable: true } });
    }
    expect((await send(url, ["POST", "/run", asking], detached)).status).toBe(503);
    await expect.poll(async () => (await get("/ready")).status, { timeout: 10_000 }).toBe(503);
    expect((await get("/health")).status).toBe(200);
    state.how = "works";
    await expect.poll(async () => (await get("/ready")).status, { timeout: 10_000 }).toBe(200);
    await expect.poll(async () => (await post("/run", asking)).status, { timeout: 20_000 }).toBe(200);
    expect((await send(url, ["DELETE", "/runs/one"])).status).toBe(200);
  });
});

it("PostgreSQL that has gone is 503, not 500", { timeout: 60_000 }, async (context) => {
  const missing = postgresIsMissing();
  if (missing !== undefined) context.skip(`host: ${missing}`);
  const database = await startPostgres();
  onTestFinished(() => database.stop());
  const store = { use: postgres, config: { url: database.url } };
  const { get, post } = await serveStored(saying("x"), { store, configuration: settings });
  expect((await get("/runs")).status).toBe(200);
  await database.restart(async () => {
    expect((await get("/runs")).status).toBe(503);
    expect((await post("/run", asking)).status).toBe(503);
    expect((await get("/ready")).status).toBe(503);
  });
  await expect.poll(async () => (await get("/runs")).status, { timeout: 20_000 }).toBe(200);
});

it("the default set doesn't start without its store on a damaged file", { timeout: 60_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "ambit-damaged-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, "runs.sqlite");
  await writeFile(file, "no database ".repeat(1_000));
  const program = new URL("../../dist/cli/main.js", import.meta.url).pathname;
  const env = { PATH: process.env.PATH, HOME: folder, XDG_STATE_HOME: folder, AMBIT_AUTH: "none" };
  const { exitCode, stderr } = await execa(process.execPath, [program, "serve", "--port", "0"], {
    cwd: folder,
    extendEnv: false,
    reject: false,
    timeout: 50_000,
    env: { ...env, AMBIT_SQLITE_FILE: file },
  });
  expect(exitCode).toBe(2);
  expect(stderr).toContain("the store 'sqlite' can't be opened");
  expect(stderr).toContain('"without": ["@ambit/store-sqlite"]');
});
