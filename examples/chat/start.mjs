/**
 * `npm run example:chat`, after `npm run setup`: Ambit with its demo agent, and in front of it what a platform has, a server with
 * a page and with Ambit's token, which passes the chat's requests on.
 */
import { randomUUID } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import door from "@ambit/door-ai-sdk";
import { openAmbit, startServer, takeEnvironment } from "ambit";
import { build } from "esbuild";
import { request } from "./request.mjs";

const path = (name) => fileURLToPath(new URL(name, import.meta.url));

/** The page's files. */
async function bundle() {
  const { outputFiles } = await build({
    entryPoints: [path("src/main.tsx"), path("src/style.css")],
    bundle: true,
    write: false,
    outdir: "/",
    jsx: "automatic",
    format: "esm",
    target: "es2022",
    minify: true,
    define: { "process.env.NODE_ENV": '"production"' },
  });
  const named = (end) => outputFiles.find((file) => file.path.endsWith(end))?.text ?? "";
  return new Map([
    ["/", { type: "text/html", content: await readFile(path("index.html"), "utf8") }],
    ["/main.js", { type: "text/javascript", content: named(".js") }],
    ["/style.css", { type: "text/css", content: named(".css") }],
  ]);
}

/** The request without its boundary, on a host that can't guarantee it: it would refuse every run there. */
async function requestHere(url, headers) {
  const body = JSON.stringify({ ...request, messages: [{ role: "user", content: "say hello" }] });
  const plan = await fetch(`${url}/plan`, { method: "POST", headers, body });
  if (plan.status !== 422) return undefined;
  const { failure } = await plan.json();
  const [gap] = failure.gaps;
  console.log(
    `This host can't guarantee the example's boundary, so its runs have none. ${gap.reason}: ${gap.fix}`,
  );
  return { ...request, sandboxPermission: { network: "on", filesystem: "on" } };
}

// What it keeps ends with it, and what the user's own server has stays apart.
const folder = await mkdtemp(join(tmpdir(), "ambit-chat-"));
process.env.AMBIT_SQLITE_FILE = join(folder, "runs.sqlite");
if (process.getuid?.() !== 0) process.env.XDG_STATE_HOME = join(folder, "state");
process.env.HOME ||= folder;

const token = randomUUID();
const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
const environment = takeEnvironment({ AMBIT_PORT: "0", AMBIT_TOKEN: token });
const plugins = [{ use: door, config: { request } }];
const ambit = await openAmbit({
  environment,
  configuration: { extends: "defaults", plugins },
  logLevel: "error",
});
const [server, files] = await Promise.all([startServer(ambit), bundle()]);
const instead = await requestHere(server.url, headers);

/** Passes a request of the chat on, as a platform does for a user whom it knows. A file's URL has a token of its own. */
async function passOn(incoming, outgoing, headers) {
  const { method, url } = incoming;
  const leave = new AbortController();
  outgoing.once("close", () => leave.abort());
  const body = method === "POST" ? await new Response(Readable.toWeb(incoming)).text() : undefined;
  const answer = await fetch(`${server.url}${url}`, {
    method,
    headers,
    signal: leave.signal,
    ...(body === undefined
      ? {}
      : {
          body:
            instead === undefined ? body : JSON.stringify({ ...JSON.parse(body || "{}"), ambit: instead }),
        }),
  });
  outgoing.writeHead(answer.status, Object.fromEntries(answer.headers));
  if (answer.body === null) return void outgoing.end();
  outgoing.flushHeaders();
  // An answer that breaks, breaks here too.
  await pipeline(Readable.fromWeb(answer.body), outgoing);
}

const page = createServer((incoming, outgoing) => {
  const { pathname } = new URL(incoming.url ?? "/", "http://page");
  const file = files.get(pathname);
  const from = pathname.startsWith("/ai-sdk/") ? headers : pathname.startsWith("/runs/") ? {} : undefined;
  if (from !== undefined) return void passOn(incoming, outgoing, from).catch(() => outgoing.destroy());
  outgoing.writeHead(file === undefined ? 404 : 200, {
    "content-type": `${file?.type ?? "text/plain"}; charset=utf-8`,
  });
  outgoing.end(file?.content ?? "There is no such page.");
});
page.listen(Number(process.env.PORT ?? 3_000), "127.0.0.1", () => {
  const { port } = Object(page.address());
  console.log(`The chat is at http://localhost:${port}/  (Ctrl-C ends it)`);
});

const end = async () => {
  page.close();
  page.closeAllConnections();
  await server.close();
  await rm(folder, { recursive: true, force: true });
  process.exit(0);
};
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => void end());
