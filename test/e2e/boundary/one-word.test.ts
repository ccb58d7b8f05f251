import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import type { RunResult, StreamRecord } from "@ambit/core";
import { startLoopbackDaytona, unavailableReason } from "@ambit/daytona-loopback";
import { dockerEngine, unavailableReason as whyNoRuntime } from "@ambit/docker-engine";
import { startModelServer } from "@ambit/model-server";
import { describe, expect, it, onTestFinished } from "vitest";
import { emptyFolder, ndjson, recordsOf, repository, type Server, serve } from "../support/ambit.js";
import { callbackServer, callbackTool } from "../support/callback-server.js";
import { bothSandboxes, containers } from "../support/configurations.js";
import { outputsOn, working } from "../support/outputs.js";
import { answerAt, takeAddress } from "../support/shared-address.js";

const here = "10.99.0.10";
const key = "model-key-of-the-test";
const reason = unavailableReason();

const object = (properties: object) => ({ type: "object", properties, required: Object.keys(properties) });

/** Returns its own value, and which addresses it reaches: the listed one as a control, and an unlisted one that works. */
const measure = (listed: string) => `
import os, urllib.error, urllib.request
def reaches(url):
    try:
        return urllib.request.urlopen(url, timeout=15).status == 200
    except urllib.error.HTTPError as error:
        return error.code == 401  # the model's own response without a key
    except OSError:
        return False
def main(text):
    reached = {"listed": reaches("${listed}/v1beta/models"), "unlisted": reaches("http://10.99.0.30/")}
    return [len(text), len(os.environ.get("UNIT", "characters")), reached]
`;

/** The same for all sandboxes except for one word. @param env the code tool's own variables. */
function requestFor(
  sandbox: string,
  model: string,
  endpoint: string,
  env: Readonly<Record<string, string>> = { UNIT: "characters" },
) {
  const script = [
    '[[call weather {"city":"Bern"}]]',
    '[[call measure {"text":"abc"}]]',
    '[[call choose {"question":"Which coat?"}]]',
    "[[say All done.]]",
  ];
  return {
    sandbox,
    harness: "gemini",
    sandboxPermission: { network: { allowlist: [new URL(model).hostname] } },
    permissions: { default: "allow" },
    interactions: { waitMs: 60_000 },
    modelConnection: {
      provider: "google",
      endpoint: { baseUrl: model },
      credentials: [{ binding: { kind: "environment", name: "GEMINI_API_KEY" }, value: key }],
    },
    toolCallback: { endpoint },
    customTools: [
      callbackTool("weather", { description: "Weather.", inputSchema: object({ city: { type: "string" } }) }),
      {
        name: "measure",
        description: "Measures a text.",
        kind: "code",
        runtime: "python",
        code: measure(model),
        env,
        inputSchema: object({ text: { type: "string" } }),
      },
      {
        name: "choose",
        description: "Asks the user.",
        kind: "client",
        inputSchema: object({ question: { type: "string" } }),
      },
    ],
    messages: [{ role: "user", content: `Help me. ${script.join(" ")}` }],
  };
}

/** A data folder in which Gemini CLI is where `ambit agents install gemini` puts it. */
async function installedGemini(): Promise<string> {
  const folder = await emptyFolder();
  const scope = join(folder, "ambit/agents/gemini/node_modules/@google");
  await mkdir(scope, { recursive: true });
  await symlink(join(repository, "node_modules/@google/gemini-cli"), join(scope, "gemini-cli"));
  return folder;
}

/** Runs it, and answers the client tool like the user's browser. */
async function runOn(
  { url, post }: Server,
  request: object,
): Promise<{ records: StreamRecord[]; result: RunResult }> {
  const records: StreamRecord[] = [];
  let runId = "";
  for await (const record of recordsOf(await post("/run", request, ndjson))) {
    records.push(record);
    if (record.kind === "result") return { records, result: record.result };
    const { event } = record;
    if (event.type === "data" && event.name === "run") runId = String(Object(event.data).runId);
    if (event.type !== "interaction_request" || event.kind !== "client_tool") continue;
    const answer = await fetch(`${url}/runs/${runId}/interactions/${event.id}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ output: "the blue one" }),
    });
    expect(answer.status).toBeLessThan(300);
  }
  throw new Error("there is no result");
}

/** The outputs of the request's tools. */
function toolsOf(records: readonly StreamRecord[]): Record<string, unknown> {
  const events = records.flatMap((record) => (record.kind === "event" ? [record.event] : []));
  const names = new Map(
    events.flatMap((event) => (event.type === "tool_call" ? [[event.id, event.name]] : [])),
  );
  const results = events.flatMap((event) => (event.type === "tool_result" ? [event] : []));
  return Object.fromEntries(
    results
      .map(({ id, output }) => [names.get(id) ?? id, output] as const)
      .filter(([name]) => ["weather", "measure", "choose"].includes(name)),
  );
}

/** A receipt without the parts that differ between sandboxes: name, facts and explanations. */
function shapeOf({ receipt }: RunResult) {
  if (receipt === undefined) throw new Error("there is no receipt");
  return {
    keys: Object.keys(receipt).sort(),
    confinement: receipt.confinement,
    enforcement: receipt.enforcement,
    required: receipt.required,
    guarantees: receipt.guarantees.map(({ capability, by }) => [
      capability,
      by === receipt.sandbox ? "sandbox" : by,
    ]),
    actors: receipt.actors.map(({ kind, name, assurance, subjects }) => [
      kind,
      kind === "sandbox" ? "" : name,
      assurance,
      subjects,
    ]),
    visibleCredentials: receipt.visibleCredentials,
    history: receipt.session.history,
  };
}

/** The same files and the same patch leave every sandbox. */
async function takesTheSameOut(server: Server, sandbox: string): Promise<void> {
  const here = await outputsOn(server, { ...working, sandbox: "local" });
  const there = await outputsOn(server, { ...working, sandbox });
  expect(here.outputs.patch).toMatchObject({ complete: false, changes: { length: 5 } });
  expect(there.outputs).toEqual(here.outputs);
  expect(there.patch).toBe(here.patch);
}

describe("one field of the request", () => {
  it("moves a real agent with all kinds of tools from this host to Daytona", {
    timeout: 180_000,
  }, async (context) => {
    if (reason !== undefined) context.skip(`host: ${reason}`);
    await using model = await startModelServer({ expectedKey: key });
    const platform = await callbackServer((_name, { city }) => ({ city, sky: "clear" }));
    const modelPort = Number(new URL(model.url).port);
    const callbackPort = Number(new URL(platform.endpoint).port);
    takeAddress(here);
    await answerAt(here, modelPort);
    await answerAt(here, callbackPort);
    const daytona = await startLoopbackDaytona({
      startDelayMs: 0,
      snapshots: {
        agents: {
          user: "root",
          binds: { [join(repository, "node_modules")]: "/opt/agents/node_modules" },
          env: { PATH: "/opt/agents/node_modules/.bin:/usr/local/bin:/usr/bin:/bin" },
        },
      },
      world: [
        { name: "model.example.test", address: here, ports: [modelPort], forwardTo: modelPort },
        { name: "address.example.test", address: "10.99.0.20" },
        { name: "name.example.test" },
        { name: "other.example.test", address: "10.99.0.30" },
      ],
    });
    onTestFinished(() => daytona.close());
    const environment = {
      LOOPBACK_DAYTONA_URL: daytona.apiUrl,
      LOOPBACK_DAYTONA_DATA: await emptyFolder(),
      DAYTONA_API_KEY: daytona.apiKey,
    };
    const server = await serve(environment, bothSandboxes);

    const run = async (sandbox: string) => {
      const endpoint = `http://${here}:${callbackPort}/tools/call`;
      const recorded = await runOn(server, requestFor(sandbox, `http://${here}:${modelPort}`, endpoint));
      expect(recorded.result, `${recorded.result.error}\n${server.log()}`).toMatchObject({
        ok: true,
        stopReason: "end_turn",
      });
      expect(JSON.stringify(recorded.records)).not.toContain(key);
      return recorded;
    };
    const local = await run("local");
    const remote = await run("daytona");

    expect(remote.result.output).toBe(local.result.output);
    expect(toolsOf(remote.records)).toEqual(toolsOf(local.records));
    expect(shapeOf(remote.result)).toEqual(shapeOf(local.result));
    expect(toolsOf(remote.records)).toMatchObject({
      weather: expect.stringContaining("clear"),
      measure: '[3,10,{"listed":true,"unlisted":false}]',
      choose: expect.stringContaining("the blue one"),
    });
    expect(platform.calls.map(({ arguments: given }) => given)).toEqual([{ city: "Bern" }, { city: "Bern" }]);

    // The agent isn't part of the image: copied from here, with the packages it needs.
    await takesTheSameOut(server, "daytona");
    await expect.poll(() => daytona.sandboxes().map(({ state }) => state)).toEqual([]);
  });

  // gVisor's /proc shows every tool's variables, so a tool with variables of its own is refused there and left out.
  it.for([
    ["runc", { UNIT: "characters" }],
    ["runsc", {}],
  ] as const)("takes it to a container with %s", { timeout: 240_000 }, async ([runtime, env], context) => {
    const missing = whyNoRuntime(runtime);
    if (missing !== undefined) context.skip(`host: ${missing}`);
    const { socket, image } = dockerEngine();
    await using model = await startModelServer({ expectedKey: key });
    const platform = await callbackServer((_name, { city }) => ({ city, sky: "clear" }));
    const modelPort = Number(new URL(model.url).port);
    const callbackPort = Number(new URL(platform.endpoint).port);
    const address = "10.99.0.11";
    takeAddress(address);
    await answerAt(address, modelPort);
    await answerAt(address, callbackPort);
    const environment = {
      TEST_DOCKER_SOCKET: socket,
      TEST_DOCKER_IMAGE: image,
      TEST_DOCKER_RUNTIMES: runtime,
      TEST_DOCKER_DATA: await emptyFolder(),
      TEST_DOCKER_FOLDER: await emptyFolder(),
      XDG_DATA_HOME: await installedGemini(),
    };
    const server = await serve(environment, containers);
    const run = async (sandbox: string) => {
      const endpoint = `http://${address}:${callbackPort}/tools/call`;
      const request = requestFor(sandbox, `http://${address}:${modelPort}`, endpoint, env);
      const recorded = await runOn(server, request);
      expect(recorded.result, `${JSON.stringify(recorded.result.failure)} ${server.log()}`).toMatchObject({
        ok: true,
        stopReason: "end_turn",
      });
      expect(JSON.stringify(recorded.records)).not.toContain(key);
      return recorded;
    };
    const local = await run("local");
    const inside = await run(runtime);

    expect(inside.result.output).toBe(local.result.output);
    expect(toolsOf(inside.records)).toEqual(toolsOf(local.records));
    expect(shapeOf(inside.result)).toEqual(shapeOf(local.result));
    expect(toolsOf(inside.records)).toMatchObject({
      measure: '[3,10,{"listed":true,"unlisted":false}]',
    });
    await takesTheSameOut(server, runtime);
    if (runtime === "runsc") return;

    // As docs/deploy.md says: installed on this host, used in a container without a network.
    const off = {
      sandbox: runtime,
      sandboxPermission: { network: "off", filesystem: "workspace", secrets: "hidden" },
      permissions: { default: "allow" },
      messages: [{ role: "user", content: "[[shell hostname > made.txt; cat made.txt; env]]" }],
    };
    const { modelConnection } = requestFor(runtime, model.url, "");
    const { records, result } = await runOn(server, { ...off, harness: "gemini", modelConnection });
    expect(result, server.log()).toMatchObject({
      ok: true,
      output: expect.stringContaining("sandbox"),
      receipt: {
        sandbox: runtime,
        visibleCredentials: [],
        credentials: [{ name: "GEMINI_API_KEY", by: "route" }],
        evidence: { "agent.version": expect.stringMatching(/^\d+\.\d+\.\d+$/) },
      },
    });
    expect(result.receipt?.guarantees.map(({ capability }) => capability)).toEqual(
      expect.arrayContaining(["network.deny", "filesystem.workspace-only", "secrets.hidden"]),
    );
    expect(JSON.stringify(records)).not.toContain(key);

    // Neither installed here nor in the image.
    const credentials = [{ binding: { kind: "environment", name: "OPENAI_API_KEY" }, value: key }];
    const connection = { provider: "openai", endpoint: { baseUrl: `${model.url}/v1` }, credentials };
    const absent = await runOn(server, { ...off, harness: "opencode", modelConnection: connection });
    expect(absent.result).toMatchObject({
      ok: false,
      error: expect.stringMatching(
        /OpenCode isn't in the sandbox's image, which has no "opencode": ambit agents install opencode on this host, or install it in the image \(npm install --global opencode-ai@/,
      ),
    });
  });
});
