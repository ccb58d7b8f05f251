import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import {
  allOf,
  demo,
  isMessage,
  ndjson,
  readUntil,
  recordsOf,
  resultOf,
  type Server,
  startServer,
} from "./support/ambit.js";
import { unconfined } from "./support/configurations.js";

/** The environment of the container in the other runner's compose file, blank where nothing is set. */
const composed = (token: string) => ({
  AGENTA_RUNNER_PORT: "8765",
  AGENTA_RUNNER_HOST: "0.0.0.0",
  AGENTA_RUNNER_REPLICA_ID: "local-runner-1",
  AGENTA_API_INTERNAL_URL: "http://api:8000",
  AGENTA_API_KEY: "",
  AGENTA_RUNNER_TOKEN: token,
  AGENTA_RUNNER_ENABLED_SANDBOX_PROVIDERS: "local",
  AGENTA_RUNNER_DEFAULT_SANDBOX_PROVIDER: "local",
  AGENTA_RUNNER_RUN_TOTAL_TIMEOUT_MS: "",
  AGENTA_RUNNER_DAYTONA_API_KEY: "",
  AGENTA_RUNNER_DAYTONA_TARGET: "",
});

const token = randomUUID();
const headers = { authorization: `Bearer ${token}` };
const streaming = { ...headers, ...ndjson };

let server: Server;
/** As in that container, but on an unused port, since its own could collide with another test's. */
beforeAll(async () => {
  server = await startServer({ ...composed(token), AMBIT_PORT: "0" }, unconfined);
  return () => void server.process.kill("SIGKILL");
});

describe("with the environment of the other runner's compose file", () => {
  it("the server listens, requires its token, and reports how it read each variable", async () => {
    expect(server.url).toContain("0.0.0.0");
    const url = server.url.replace("0.0.0.0", "127.0.0.1");
    expect((await fetch(`${url}/health`)).status).toBe(200);
    expect((await fetch(`${url}/subscription-status`)).status).toBe(401);
    expect(await (await fetch(`${url}/subscription-status`, { headers })).json()).toMatchObject({
      version: 1,
    });
    expect(server.log()).toContain("AGENTA_RUNNER_TOKEN is read as AMBIT_TOKEN: rename it");
    expect(server.log()).toContain("AGENTA_RUNNER_PORT has no effect where AMBIT_PORT is set");
    expect(server.log()).toContain("AGENTA_RUNNER_ENABLED_SANDBOX_PROVIDERS has no effect");
    expect(server.log()).not.toContain("RUN_TOTAL_TIMEOUT_MS");
    expect(server.log()).not.toContain(token);
  });

  it("a run as its SDK sends it streams its events, then its one result", async () => {
    const body = {
      ...demo("say hello"),
      sandbox: "local",
      sessionId: null,
      messages: [
        { role: "developer", content: "Be brief." },
        { role: "assistant", content: null },
        { role: "user", content: [{ type: "text", text: "say hello" }] },
      ],
      context: null,
      telemetry: null,
      tools: [],
      customTools: [],
      toolCallback: { endpoint: null },
      runContext: { run: { kind: "test" }, project: { id: "p" } },
    };
    const response = await server.post("/run", body, streaming);
    expect(response.status).toBe(200);
    expect(await resultOf(recordsOf(response))).toMatchObject({ ok: true, output: "hello", events: [] });
  });

  it("a refused run is 200 with a record that has the reason", async () => {
    const response = await server.post("/run", { ...demo(), messages: [] }, streaming);
    expect(response.status).toBe(200);
    expect(await allOf(recordsOf(response))).toMatchObject([
      { kind: "result", result: { ok: false, error: expect.stringContaining("No user message to send") } },
    ]);
  });

  it("two projects with one session id are separate, and a kill ends only its own session", async () => {
    const run = async (project: string, ...script: string[]) => {
      const body = { ...demo(...script), sessionId: "s", runContext: { project: { id: project } } };
      return (await server.post("/run", body, headers)).text();
    };
    await run("a", "write secret.txt of-project-a");
    expect(await run("a", "read secret.txt")).toContain("of-project-a");
    expect(await run("b", "read secret.txt")).not.toContain("of-project-a");
    const kill = async (body: object) => (await server.post("/kill", body, headers)).json();
    expect(await kill({ sessionId: "s" })).toMatchObject({ ended: false, message: expect.any(String) });
    expect(await kill({ sessionId: "s", projectId: "a" })).toEqual({ ok: true, ended: true });
    expect(await run("a", "read secret.txt")).not.toContain("of-project-a");
  });

  it("a session's run continues after its caller left, and ends with its session", async () => {
    const session = { sessionId: "left", projectId: "p" };
    const left = await server.post("/run", { ...demo("say begun", "hang"), ...session }, streaming);
    const records = recordsOf(left);
    await readUntil(records, isMessage("begun"));
    await records.return(undefined);
    await expect.poll(() => server.log()).toContain("the caller left");
    const busy = await server.post("/run", { ...demo("say again"), ...session }, headers);
    expect(busy.status).toBe(429);
    const killed = await server.post("/kill", session, headers);
    expect(await killed.json()).toEqual({ ok: true, ended: true });
    await expect.poll(() => server.log()).toContain('"outcome":"cancelled"');
  });

  it.each([
    ["base64", { data: "iVBORw0KGgo=", mimeType: "image/png" }],
    ["a data: URI", { uri: "data:image/png;base64,iVBORw0KGgo=" }],
  ])("an image arrives as one: %s", async (_what, image) => {
    const content = [
      { type: "text", text: "attachments" },
      { type: "image", ...image },
    ];
    const body = { ...demo(), messages: [{ role: "user", content }] };
    expect(await (await server.post("/run", body, headers)).text()).toMatch(/image\/png/);
  });
});
