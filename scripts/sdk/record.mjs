// Records what an earlier version of the official SDK sends, as test/golden/reference-request-sdk-<version>-*.json:
// node scripts/sdk/record.mjs. Its own service runs, and in place of the runner, a server that only records its requests.
// Then `npm run format`.
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { installSdk, versions } from "./install.mjs";
import { startPlatform } from "./platform.mjs";
import { say, startService } from "./service.mjs";
import { agentWith, gatewayTool, pick, uiUser, user } from "./turns.mjs";

const [, version = ""] = versions;
const short = version.split(".").slice(0, 2).join(".");
const golden = new URL("../../test/golden/", import.meta.url);

const asked = '[[call create_issue {"title":"x"}]]';
const answered = {
  id: "message-2",
  role: "assistant",
  parts: [
    {
      type: "tool-create_issue",
      toolCallId: "ask_0001",
      input: { title: "x" },
      state: "approval-responded",
      approval: { id: "ask_0001", approved: true },
    },
  ],
};
const acme = {
  name: "acme",
  // The SDK looks the name up.
  connection: { type: "http", url: "https://127.0.0.1:1/mcp" },
  policy: { tools: { mode: "include", names: ["echo"] }, permission: "ask" },
};
const skill = { name: "release-notes", description: "Writes release notes", body: "Write them briefly." };
const network = { mode: "allowlist", allowlist: ["203.0.113.0/24"] };

/** @type {Record<string, { agent: object, messages: object[], form?: "vercel" }>} */
const sent = {
  "simple-chat": { agent: agentWith(), messages: [user("Say hello.")] },
  "gateway-tools-approval": {
    agent: agentWith({ tools: [gatewayTool("LIST_ISSUES", "allow"), gatewayTool("CREATE_ISSUE", "ask")] }),
    messages: [{ ...uiUser(asked), id: "message-1" }, answered],
    form: "vercel",
  },
  "client-tool": { agent: agentWith({ tools: [pick] }), messages: [user("Let me pick.")] },
  "mcp-server": { agent: agentWith({ mcps: [acme] }), messages: [user("Echo it.")] },
  "sandbox-permission": {
    agent: agentWith({
      sandbox: { kind: "local", permissions: { network, filesystem: "readonly", enforcement: "strict" } },
    }),
    messages: [user("Look around.")],
  },
  skill: { agent: agentWith({ skills: [skill] }), messages: [user("What changed?")] },
};

/** @type {string[]} */
const bodies = [];
const recorder = createServer(async (request, response) => {
  if (request.method === "POST") bodies.push(await text(request));
  response.writeHead(200, { "content-type": "application/x-ndjson" });
  const result = { ok: true, output: "Done.", messages: [], events: [] };
  response.end(
    `${JSON.stringify({ kind: "event", event: { type: "message", text: "Done." } })}\n${JSON.stringify({ kind: "result", result })}\n`,
  );
});
await new Promise((resolve) => void recorder.listen(0, "127.0.0.1", () => resolve(undefined)));
const address = recorder.address();
const port = typeof address === "object" && address !== null ? address.port : 0;

const { python, packages } = await installSdk();
const platform = await startPlatform({ modelUrl: "http://127.0.0.1:9", tls: { key: "", cert: "" } });
const service = await startService({
  python,
  packages: packages(version),
  platform: platform.origin,
  runner: `http://127.0.0.1:${port}`,
  token: "the-token-of-the-recorder",
});
try {
  for (const [name, { agent, messages, form }] of Object.entries(sent)) {
    const turn = await say(service.url, { agent, messages, session: "sess-0001", ...(form ? { form } : {}) });
    const body = bodies.pop();
    if (body === undefined)
      throw new Error(
        `${name}: nothing was sent: ${JSON.stringify(turn).slice(0, 2_000)}\n${service.log.join("\n")}`,
      );
    const file = new URL(`reference-request-sdk-${short}-${name}.json`, golden);
    writeFileSync(file, `${JSON.stringify(steady(JSON.parse(body)), undefined, 2)}\n`);
    console.log(file.pathname);
  }
} finally {
  service.close();
  platform.close();
  recorder.close();
}

/** The same at each recording: what differs is this machine's, or random. @param {any} body */
function steady(body) {
  const trace = "0af7651916cd43dd8448eb211c80319c";
  const span = "b7ad6b7169203331";
  const written = JSON.stringify(body)
    .replaceAll(platform.origin, "https://agenta.example")
    .replaceAll("https://127.0.0.1:1/", "https://mcp.example/")
    .replaceAll(/https:\/\/127\.0\.0\.1:\d+/g, "https://models.example")
    .replaceAll(/00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}/g, `00-${trace}-${span}-01`)
    .replaceAll(/"trace_id":"[0-9a-f]{32}"/g, `"trace_id":"${trace}"`)
    .replaceAll(/"span_id":"[0-9a-f]{16}"/g, `"span_id":"${span}"`);
  return JSON.parse(written);
}
