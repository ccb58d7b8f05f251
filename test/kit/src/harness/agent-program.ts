/** What the kit's scripted agent does. `normal` behaves well; each of the others differs in one thing. */
export type AgentScript =
  | "normal"
  | "careless-output"
  | "ignores-cancel"
  | "fails-the-turn"
  | "crashes"
  | "exits-at-once"
  | "never-answers"
  | "no-agent";

/**
 * The source of the kit's agent as one file: a Node.js program that speaks ACP over its standard streams and needs
 * nothing but Node.js. Prompts are commands: `say <text>`, `write <file>` with one of its own tools, for which it first
 * asks permission, `wait` until the turn is cancelled. It starts a child, and writes its own and the child's process
 * numbers to `processes.json` in its working folder; neither ends on SIGTERM.
 */
export function agentProgram(script: AgentScript): string {
  return `#!/usr/bin/env node
import { spawn } from "node:child_process";
import { renameSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

const script = ${JSON.stringify(script)};
${program}`;
}

const program = String.raw`
if (script === "exits-at-once") process.exit(7);
process.on("SIGTERM", () => {});
const child = spawn("/bin/sh", ["-c", "trap '' TERM; for _ in $(seq 60); do sleep 1; done"], { stdio: "ignore" });
// Written atomically for its readers.
writeFileSync("processes.json.part", JSON.stringify([process.pid, child.pid]));
renameSync("processes.json.part", "processes.json");
// Runs until it is killed, whatever happens to its streams.
setInterval(() => {}, 1_000_000);
process.stdout.on("error", () => {});

const line = (text) => process.stdout.write(text + "\n");
const send = (message) => line(JSON.stringify({ jsonrpc: "2.0", ...message }));
const update = (sessionId, update) => send({ method: "session/update", params: { sessionId, update } });
const say = (sessionId, text) =>
  update(sessionId, { sessionUpdate: "agent_message_chunk", content: { type: "text", text } });

const replies = new Map();
const ask = (method, params) =>
  new Promise((resolve) => {
    const id = "q" + replies.size;
    replies.set(id, resolve);
    send({ id, method, params });
  });

let cancelled = () => {};

async function write(sessionId, file) {
  const toolCallId = "call-" + file;
  const rawInput = { path: file };
  const call = { toolCallId, title: "write_file", kind: "edit", rawInput };
  update(sessionId, { sessionUpdate: "tool_call", status: "pending", ...call });
  const options = [
    { optionId: "yes", name: "Allow", kind: "allow_once" },
    { optionId: "no", name: "Reject", kind: "reject_once" },
  ];
  const reply = await ask("session/request_permission", { sessionId, toolCall: call, options });
  const allowed = reply.result?.outcome?.optionId === "yes";
  if (allowed) writeFileSync(file, "written");
  const status = allowed ? "completed" : "failed";
  const text = allowed ? "written" : "refused";
  update(sessionId, {
    sessionUpdate: "tool_call_update",
    toolCallId,
    status,
    content: [{ type: "content", content: { type: "text", text } }],
  });
}

async function prompt(id, { sessionId, prompt }) {
  const [, order = "", rest = ""] = /^(\w+) ?(.*)/s.exec(prompt.map(({ text = "" }) => text).join("").trim()) ?? [];
  const end = (stopReason) => send({ id, result: { stopReason } });
  if (script === "crashes") {
    say(sessionId, "so far");
    // After it was written.
    return void setTimeout(() => process.exit(7), 100);
  }
  if (script === "fails-the-turn") return send({ id, error: { code: -32603, message: "out of order" } });
  if (script === "careless-output") {
    line("a line that is no JSON");
    line('{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":7,"update":null}}');
    line('{"jsonrpc":"2.0","method":"never/heard/of","params":[]}');
    update(sessionId, { sessionUpdate: "never_heard_of" });
    update(sessionId, { sessionUpdate: "tool_call_update", toolCallId: "never-begun", status: "completed" });
  }
  if (order === "wait") {
    cancelled = () => end("cancelled");
    say(sessionId, "waiting");
    return;
  }
  if (order === "write") await write(sessionId, rest);
  if (order === "say") for (const part of rest.match(/.{1,5}/gs) ?? []) say(sessionId, part);
  end("end_turn");
}

const answers = {
  initialize: () => ({
    protocolVersion: 1,
    agentCapabilities: { mcpCapabilities: { http: true } },
    authMethods: [],
  }),
  "session/new": () => ({ sessionId: "s1" }),
};

createInterface({ input: process.stdin }).on("line", (text) => {
  if (script === "never-answers") return;
  if (script === "no-agent") return line("Welcome! Type help.");
  const { id, method, params, ...reply } = JSON.parse(text);
  if (method === undefined) return replies.get(id)?.(reply);
  if (method === "session/cancel") return script === "ignores-cancel" ? undefined : cancelled();
  if (method === "session/prompt") return void prompt(id, params);
  if (id === undefined) return;
  const answer = answers[method];
  send(answer ? { id, result: answer() } : { id, error: { code: -32601, message: "no such method" } });
});
`;
