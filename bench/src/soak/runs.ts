import { type IncomingMessage, request } from "node:http";
import { type HttpCaller, linesOf } from "../http.js";
import { pause } from "../machine/program.js";
import { demoRequest } from "../subjects/server/requests.js";
import { brokenTools } from "./platform.js";

/** What a run of the soak gets. */
export interface Stage {
  readonly caller: HttpCaller;
  /** The platform's endpoint for tool calls. */
  readonly endpoint: string;
  /** Added to each request: a boundary, if this host can enforce one. */
  readonly boundary: object;
  /** A number that differs in each run, for names. */
  next(): number;
}

/** One kind of caller or agent. Rejects if a promise wasn't kept. */
export type SoakRun = (stage: Stage) => Promise<void>;

/** Runs that must succeed, whatever the others do. */
export const normalRuns: Readonly<Record<string, SoakRun>> = {
  "a word": (stage) => succeeds(stage, "say hello"),
  "a callback": (stage) =>
    succeeds(stage, 'call answers {"city":"Bern"}', { customTools: [tool("answers")] }, "18 degrees"),
  "files and a command": (stage) => succeeds(stage, "write a.txt hello\nrun cat a.txt", {}, "hello"),
  "two turns of a session": async (stage) => {
    const sessionId = `soak-${stage.next()}`;
    await succeeds(stage, "write kept.txt remembered", { sessionId });
    await succeeds(stage, "read kept.txt", { sessionId }, "remembered");
    await stage.caller.post("/kill", JSON.stringify({ sessionId }));
  },
};

/** Agents, callers and tools that misbehave. Each must end without affecting others. */
export const hostileRuns: Readonly<Record<string, SoakRun>> = {
  "an agent that crashes": (stage) => ends(stage, "say begun\ncrash"),
  "an agent that prints noise": (stage) => ends(stage, "noise\nnoise\nsay done"),
  "an agent that fails its turn": (stage) => ends(stage, "fail no luck"),
  "an agent that leaves a process behind": (stage) => ends(stage, "detach 120"),
  "an agent that never answers": (stage) => leaves(stage, "hang"),
  "an agent that ignores signals": (stage) => leaves(stage, "deaf"),
  "an agent that says 20 MB at once": (stage) => ends(stage, "big 20000000"),
  "a slow reader of many events": (stage) => readsSlowly(stage, "stream 30000 abcdefghij"),
  "a reader that leaves at once": (stage) => leaves(stage, "stream 30000 abcdefghij"),
  "broken callbacks": (stage) => {
    const name = brokenTools[stage.next() % brokenTools.length] ?? "fails";
    return ends(stage, `call ${name} {}`, { customTools: [{ ...tool(name), timeoutMs: 500 }] });
  },
  "a pattern that backtracks": (stage) => {
    const inputSchema = { type: "object", properties: { a: { type: "string", pattern: "^((a+)+)\\1?$" } } };
    const script = `call answers {"a":"${"a".repeat(60)}!"}`;
    return ends(stage, script, { customTools: [{ ...tool("answers"), inputSchema }] });
  },
  "a hundred calls at once": (stage) =>
    ends(stage, Array.from({ length: 100 }, () => "& call answers {}").join("\n"), {
      customTools: [tool("answers")],
    }),
  "endless nesting": async ({ caller }) => {
    const { status } = await caller.post("/run", `{"messages":${"[".repeat(50_000)}${"]".repeat(50_000)}}`);
    requireStatus(status, 413);
  },
  "no JSON": async ({ caller }) => requireStatus((await caller.post("/run", "{no json")).status, 400),
  "a body that stops": ({ caller }) => stopsInTheMiddle(caller.url),
};

function tool(name: string): object {
  return { name, callRef: name, permission: "allow", inputSchema: { type: "object" } };
}

function body(stage: Stage, script: string, more: object): string {
  return demoRequest(script, { toolCallback: { endpoint: stage.endpoint }, ...stage.boundary, ...more });
}

async function succeeds(stage: Stage, script: string, more: object = {}, holds = ""): Promise<void> {
  const { status, text } = await stage.caller.post("/run", body(stage, script, more));
  if (status !== 200 || !text.startsWith('{"ok":true') || !text.includes(holds))
    throw new Error(`a normal run failed (${status}): ${text.slice(0, 500)}`);
}

/** Any one result is accepted, except an internal error. */
async function ends(stage: Stage, script: string, more: object = {}): Promise<void> {
  const { status, text } = await stage.caller.post("/run", body(stage, script, more));
  if (text.includes('"code":"internal"') || text.includes('"code":"plugin_broke_contract"') || status === 429)
    throw new Error(`a hostile run ended unexpectedly (${status}): ${text.slice(0, 500)}`);
}

async function leaves(stage: Stage, script: string): Promise<void> {
  const response = await stage.caller.open("/run", body(stage, script, {}), "application/x-ndjson");
  response.on("error", () => {});
  await pause(200 + 50 * (stage.next() % 10));
  response.destroy();
}

async function readsSlowly(stage: Stage, script: string): Promise<void> {
  const response = await stage.caller.open("/run", body(stage, script, {}), "application/x-ndjson");
  response.pause();
  await pause(1_000);
  requireStatus(response.statusCode ?? 0, 200);
  if (!(await lastLine(response)).startsWith('{"kind":"result"'))
    throw new Error("a stream ended without its result");
}

async function lastLine(response: IncomingMessage): Promise<string> {
  let last = "";
  for await (const line of linesOf(response)) last = line;
  return last;
}

function stopsInTheMiddle(url: string): Promise<void> {
  return new Promise((resolve) => {
    const sent = request(new URL("/run", url), { method: "POST", headers: { "content-length": "1000000" } });
    sent.on("error", () => resolve());
    sent.write('{"messages":[');
    setTimeout(() => {
      sent.destroy();
      resolve();
    }, 300);
  });
}

function requireStatus(status: number, expected: number): void {
  if (status !== expected) throw new Error(`answered with ${status}, not ${expected}`);
}
