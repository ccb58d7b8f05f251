// The SDK's own service, and what a browser sends to it.
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

/** Milliseconds until it answers: it loads a hundred packages. */
const startTimeoutMs = 180_000;

/**
 * @typedef {object} Turn what one request to the service came to
 * @property {number} status
 * @property {Record<string, any>[]} parts events, or parts of a UI message stream
 * @property {any} body of an answer that isn't a stream
 */

/**
 * @param {{ python: string, packages: string, platform: string, runner: string, token: string }} options
 * `packages`: the folder with the version of the SDK
 */
export async function startService({ python, packages, platform, runner, token }) {
  const port = await freePort();
  /** @type {string[]} */
  const log = [];
  const child = spawn(python, [fileURLToPath(new URL("app.py", import.meta.url))], {
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      PYTHONPATH: packages,
      SDK_PORT: String(port),
      AGENTA_HOST: platform,
      AGENTA_API_URL: `${platform}/api`,
      AGENTA_API_KEY: "platform-key-1",
      AGENTA_SERVICES_MIDDLEWARE_AUTH_ENABLED: "false",
      AGENTA_SERVICE_MIDDLEWARE_AUTH_ENABLED: "false",
      // This platform is on loopback.
      AGENTA_INSECURE_EGRESS_ALLOWED: "true",
      AGENTA_GATEWAYS_INSECURE_HTTP_ALLOWED: "true",
      // Otherwise it loads prices from another host at each start.
      LITELLM_LOCAL_MODEL_COST_MAP: "True",
      AGENTA_RUNNER_INTERNAL_URL: runner,
      AGENTA_RUNNER_TOKEN: token,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  /** The running service's own word. */
  let version = "";
  for (const stream of [child.stdout, child.stderr])
    createInterface({ input: stream }).on("line", (line) => {
      version ||= /^agenta ([\d.]+)$/.exec(line)?.[1] ?? "";
      if (log.push(line.slice(0, 2_000)) > 500) log.shift();
    });
  const url = `http://127.0.0.1:${port}`;
  const end = Date.now() + startTimeoutMs;
  while (
    !(await fetch(`${url}/health`).then(
      ({ ok }) => ok,
      () => false,
    ))
  ) {
    if (child.exitCode !== null || Date.now() > end)
      throw new Error(`The SDK's service doesn't start:\n${log.join("\n")}`);
    await sleep(200);
  }
  return { url, log, version, close: () => void child.kill("SIGKILL") };
}

/**
 * @param {string} url of the service
 * @param {{ agent: object, messages: object[], session?: string, flags?: object, meta?: object, form?: "ndjson" | "vercel" | "json",
 *   signal?: AbortSignal, onPart?: (part: Record<string, any>) => void }} asked
 * @returns {Promise<Turn>}
 */
export async function say(url, { agent, messages, session, flags, meta, form = "ndjson", signal, onPart }) {
  const accept = { ndjson: "application/x-ndjson", vercel: "text/event-stream", json: "application/json" }[
    form
  ];
  const response = await fetch(`${url}/invoke`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept,
      authorization: "ApiKey platform-key-1",
      ...(form === "vercel" ? { "x-ag-messages-format": "vercel" } : {}),
    },
    body: JSON.stringify({
      data: { inputs: { messages }, parameters: { agent } },
      ...(session === undefined ? {} : { session_id: session }),
      ...(flags === undefined ? {} : { flags: { stream: form !== "json", ...flags } }),
      ...(meta === undefined ? {} : { meta }),
    }),
    ...(signal === undefined ? {} : { signal }),
  });
  /** @type {Record<string, any>[]} */
  const parts = [];
  const isStream = /ndjson|event-stream/.test(response.headers.get("content-type") ?? "");
  if (!isStream) return { status: response.status, parts, body: await response.json() };
  let rest = "";
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const text = line.replace(/^data: /, "");
      if (!text.startsWith("{")) continue;
      const part = JSON.parse(text);
      parts.push(part);
      onPart?.(part);
    }
  }
  return { status: response.status, parts, body: undefined };
}

/** @returns {Promise<number>} */
function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
