/**
 * With `--console`, the user answers in a browser: the page of `ambit serve --console`, on a run that asks.
 *
 * The main use case, offline and without keys: an agent in a sandbox calls all three kinds of tools, and waits for its
 * user in both ways. This script plays the platform and the user, on loopback.
 *
 * @typedef {import("../core/dist/index.js").StreamRecord} StreamRecord
 * @typedef {{ url: string, headers: { authorization: string } }} Callee the server, and what it wants to see.
 * @typedef {{ toolCallId: string, toolName: string, input: unknown }} Question the payload of what is asked.
 * @typedef {(kind: string, payload: Question, answer: (body: object) => Promise<void>) => void} OnQuestion
 */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { demoFailure, withoutBoundary } from "./demo-texts.mjs";
import { root, setUp } from "./setup.mjs";
import { say } from "./step.mjs";
import { onSupportedNode } from "./supported-node.mjs";

/** @param {string} text */
const tell = (text) => process.stdout.write(`\n— ${text}\n`);

/** The platform's tool endpoint: what callbacks are posted to. */
async function startPlatform() {
  const trains = [
    { at: "9:02", euros: 38 },
    { at: "9:32", euros: 29 },
  ];
  const answers = new Map(Object.entries({ tools__find_trains: trains, tools__book: { booked: true } }));
  const server = createServer(async (request, response) => {
    const { data } = /** @type {{ data: { id: string, function: { name: string } } }} */ (
      await json(request)
    );
    const content = JSON.stringify(answers.get(data.function.name));
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ call: { id: data.id, data: { content } } }));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return { endpoint: `http://127.0.0.1:${port}/tools/call`, close: () => server.close() };
}

/**
 * Posts a run, and shows its progress. Resolves with whether it succeeded.
 * @param {Callee} server
 * @param {object} request
 * @param {OnQuestion} onQuestion
 */
async function showRun({ url, headers }, request, onQuestion) {
  const { Timeline } = await import("../server/dist/cli/display/timeline.js");
  const timeline = new Timeline(performance.now());
  const response = await fetch(`${url}/run`, {
    method: "POST",
    headers: { ...headers, accept: "application/x-ndjson" },
    body: JSON.stringify(request),
  });
  const runId = response.headers.get("x-ambit-run-id");
  let went = false;
  for await (const record of recordsOf(response)) {
    if (record.kind === "result") {
      process.stdout.write(timeline.result(record.result, performance.now()));
      went = record.result.ok;
      continue;
    }
    const { event } = record;
    process.stdout.write(timeline.event(event, performance.now()));
    if (event.type !== "interaction_request") continue;
    onQuestion(event.kind, /** @type {Question} */ (event.payload), async (body) => {
      tell(`the user answers: POST /runs/…/interactions/…  ${JSON.stringify(body)}`);
      const address = `${url}/runs/${runId}/interactions/${event.id}`;
      await fetch(address, { method: "POST", headers, body: JSON.stringify(body) });
    });
  }
  return went;
}

/**
 * The records of an NDJSON response, as they arrive.
 * @param {Response} response
 * @returns {AsyncGenerator<StreamRecord>}
 */
async function* recordsOf(response) {
  let rest = "";
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const lines = `${rest}${chunk}`.split("\n");
    rest = lines.pop() ?? "";
    // Blank lines keep a silent stream alive.
    for (const line of lines) if (line !== "") yield JSON.parse(line);
  }
}

/**
 * The request within a boundary: connections to the platform only, writes in the workspace only. Without a boundary on
 * a host that can't guarantee it, which would refuse the run.
 * @template {{ toolCallback: { endpoint: string } }} Request
 * @param {Callee} server
 * @param {Request} request
 */
async function withBoundary({ url, headers }, request) {
  const allowlist = [new URL(request.toolCallback.endpoint).host];
  const bounded = { ...request, sandboxPermission: { network: { allowlist }, filesystem: "workspace" } };
  const response = await fetch(`${url}/plan`, { method: "POST", headers, body: JSON.stringify(bounded) });
  if (response.ok) return bounded;
  tell(withoutBoundary(/** @type {import("./demo-texts.mjs").Refusal} */ (await response.json())));
  return request;
}

/**
 * Starts a server with a store of its own, and the platform that its example calls.
 * @param {boolean} hasConsole
 */
async function startDemo(hasConsole) {
  const { openAmbit, startServer, takeEnvironment } = await import("../server/dist/index.js");
  // A store of its own: the user's keeps the user's runs.
  const folder = await mkdtemp(join(tmpdir(), "ambit-demo-"));
  process.env.AMBIT_SQLITE_FILE = join(folder, "runs.sqlite");
  // Its sessions too, so that it needs no home that can be written. Those of root have a folder that their users reach.
  if (process.getuid?.() !== 0) process.env.XDG_STATE_HOME = join(folder, "state");
  process.env.XDG_CACHE_HOME = join(folder, "cache");
  process.env.HOME ||= folder;
  const token = randomUUID();
  const environment = takeEnvironment({ AMBIT_PORT: "0", AMBIT_TOKEN: token });
  // What a run warns of is in its timeline.
  const configuration = hasConsole ? { server: { console: true, drainMs: 0 } } : {};
  const ambit = await openAmbit({ environment, configuration, logLevel: "error" });
  const [server, platform] = await Promise.all([startServer(ambit), startPlatform()]);
  const callee = { url: server.url, headers: { authorization: `Bearer ${token}` } };
  const example = JSON.parse(await readFile(join(root, "examples/tools.json"), "utf8"));
  const toolCallback = { ...example.toolCallback, endpoint: platform.endpoint };
  const close = async () => {
    platform.close();
    await server.close();
    await rm(folder, { recursive: true, force: true });
  };
  return { callee, token, example: { ...example, toolCallback, sessionId: "demo" }, close };
}

/** Shows a run that asks its user in the console, until Ctrl-C. */
async function showConsole() {
  const { callee, token, example, close } = await startDemo(true);
  try {
    const { AmbitClient } = await import("../packages/client/dist/index.js");
    const client = new AmbitClient({ url: callee.url, token });
    const request = await withBoundary(callee, example);
    const [{ content }] = request.messages;
    const lines = [
      "plan Look for trains; Book a seat; Write the notes",
      "think The user wants to travel from Bern to Zurich.",
      content.replace(/\nsay Done\.$/, ""),
      "write notes/journey.md # Bern to Zurich\\n\\n- 9:32, 29 euros\\n- seat 12A\\n",
      "run ls -la notes",
      "fetch https://example.com/",
      "say **Done.** The notes are in `notes/journey.md`. The boundary let me reach nothing but the platform.",
    ];
    const allowed = ["shell", "edit", "fetch"].map((pattern) => ({ pattern, permission: "allow" }));
    await client.start({
      ...request,
      messages: [{ role: "user", content: lines.join("\n") }],
      permissions: { default: "ask", rules: allowed },
      outputs: { patch: true, include: ["**"] },
      interactions: { waitMs: 3_600_000 },
    });
    const link = await client.signInLink();
    tell(
      `A run waits for you. This link signs you in once, within 5 minutes:\n\n  ${link}\n\nCtrl-C ends the demo.`,
    );
    await once(process, "SIGINT");
    return true;
  } finally {
    await close();
  }
}

async function demonstrate() {
  const { callee, example, close } = await startDemo(false);
  const seat = { seat: "12A" };
  try {
    const request = await withBoundary(callee, example);
    tell("Live: the run is held open while it asks. The request is examples/tools.json");
    const live = { ...request, interactions: { waitMs: 30_000 } };
    const answered = await showRun(callee, live, (kind, _payload, answer) =>
      answer(kind === "user_approval" ? { approved: true } : { output: seat }),
    );

    tell("Across turns: the same call, and the user is away. The run pauses, and nothing waits");
    const asked = { role: "user", content: 'call choose_seat {"train": "9:32"}' };
    /** @type {object} */
    let call = {};
    const paused = await showRun(callee, { ...request, messages: [asked] }, (_kind, payload) => {
      const { toolCallId, toolName, input } = payload;
      call = { type: "tool_call", toolCallId, toolName, input };
    });

    tell("The next request brings the answer among its messages, and the same agent goes on");
    const result = { ...call, type: "tool_result", output: seat };
    const turn = [{ role: "assistant", content: [call] }, { role: "tool", content: [result] }, asked];
    const resumed = await showRun(callee, { ...request, messages: [asked, ...turn] }, () => {});
    return answered && paused && resumed;
  } finally {
    await close();
  }
}

/** Loopback never goes through a proxy. Node reads its variables when it starts. */
async function withoutProxy() {
  const { NO_PROXY = process.env.no_proxy ?? "", NODE_USE_ENV_PROXY } = process.env;
  if (!NODE_USE_ENV_PROXY || NO_PROXY.split(",").includes("127.0.0.1")) return undefined;
  const direct = [NO_PROXY, "127.0.0.1", "localhost", "::1"].filter((name) => name !== "").join();
  const env = { ...process.env, NO_PROXY: direct, no_proxy: direct };
  const child = spawn(process.execPath, process.argv.slice(1), { stdio: "inherit", env });
  const [code] = await once(child, "close");
  return code ?? 1;
}

await onSupportedNode(async () => {
  try {
    const hasConsole = process.argv.includes("--console");
    const proxied = await withoutProxy();
    if (proxied !== undefined) return proxied;
    if (!(await setUp(hasConsole ? "console" : "demo"))) return 1;
    return (await (hasConsole ? showConsole() : demonstrate())) ? 0 : 1;
  } catch (error) {
    say(demoFailure(error));
    return 1;
  }
});
