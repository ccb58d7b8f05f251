/**
 * The five walks of docs/architecture.md, in files: `npm run walks`, or `npm run walks -- pod` for those with this word.
 *
 * Each walk is made in a process of its own. V8 counts the calls of every function from the walk's first step to its last one;
 * a file belongs to the walk if one of its functions was called in between. What start-up calls, and what a module does while
 * it is loaded, doesn't count. A tool call and an event happen several times in one run, and their files are those of each time,
 * so that what the run does beside them doesn't count. The store's thread and the agent's own program aren't looked into; the
 * guest daemon of a pod is, as a program of this machine.
 */
import { fork, spawn } from "node:child_process";
import { subscribe } from "node:diagnostics_channel";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { Session } from "node:inspector";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { Readable } from "node:stream";
import { setTimeout as after } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { clusterFolder } from "./cluster.mjs";

/**
 * @typedef {ReadonlySet<string>} Files source files, from the repository's root.
 * @typedef {{ name: string, title: string, goal: number, make(): Promise<Files>, whyNot?(): string | undefined }} Walk
 * @typedef {{ url: string, functions: { ranges: { startOffset: number, count: number }[] }[] }} Script as V8 counts it.
 */

const root = fileURLToPath(new URL("..", import.meta.url));
const built = /^(core|server|(?:packages|plugins)\/[^/]+)\/dist\/(.+)\.js$/;

/** The source of a compiled module; undefined for what isn't of this repository's packages. @param {string} path */
function sourceOf(path) {
  const [, folder, name] = built.exec(relative(root, path)) ?? [];
  return folder === undefined ? undefined : `${folder}/src/${name}.ts`;
}

/** Whether a function of a script was called, besides the one that is its module. @param {Script} script */
const wasCalled = ({ functions }) =>
  functions.some(({ ranges: [range] }) => range !== undefined && range.count > 0 && range.startOffset > 0);

/** Counts calls in this process. */
class Counter {
  #session = new Session();

  constructor() {
    this.#session.connect();
    this.#session.post("Profiler.enable");
    this.#session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  }

  /** The files that were called since the last time. */
  take() {
    /** @type {Set<string>} */
    const files = new Set();
    this.#session.post("Profiler.takePreciseCoverage", (error, taken) => {
      if (error !== null) throw error;
      for (const script of taken.result) {
        if (!script.url.startsWith("file:") || !wasCalled(script)) continue;
        const source = sourceOf(fileURLToPath(script.url));
        if (source !== undefined) files.add(source);
      }
    });
    return files;
  }
}

/** The boundary of a request that says `"restricted"` and allows one host. */
const boundary = /** @type {const} */ ({
  network: { mode: "allowlist", rules: [{ kind: "host", name: "example.com", subdomains: false }] },
  filesystem: { mode: "workspace", readable: [], writable: [], denied: [] },
  resources: { memoryMb: 512 },
});
const scope = { signal: new AbortController().signal, defer: () => undefined };
const echo = {
  argv: /** @type {const} */ (["/bin/sh", "-c", "echo started"]),
  env: { PATH: "/usr/bin:/bin" },
};

/**
 * Opens a sandbox, and starts one process in it.
 * @param {import("../core/dist/plugin/index.js").SandboxBackend} backend
 * @param {Counter} counter
 */
async function firstProcess(backend, counter) {
  const { probeSpec } = await import("../packages/backend-kit/dist/index.js");
  const spec = probeSpec(boundary);
  counter.take();
  const sandbox = await backend.open(spec, scope);
  try {
    const process = await sandbox.spawn(echo);
    const said = await new Response(process.stdout).text();
    const files = counter.take();
    if (said !== "started\n") throw new Error(`the first process said ${JSON.stringify(said)}`);
    return files;
  } finally {
    await sandbox.close();
  }
}

async function localWalk() {
  const { LocalSandbox, configSchema } = await import("../plugins/sandbox-local/dist/index.js");
  // The backend loads these modules with its first sandbox; what they do while they are loaded is no step of the walk.
  await import("../plugins/sandbox-local/dist/confined/session.js");
  const folder = await mkdtemp(join(tmpdir(), "ambit-walk-"));
  const backend = new LocalSandbox(configSchema.parse({ dataFolder: folder }));
  try {
    return await firstProcess(backend, new Counter());
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function podWalk() {
  const { setup } = await import("../test/cluster/dist/global-setup.js");
  const { testCluster } = await import("../test/cluster/dist/index.js");
  const { KubernetesSandbox, configSchema } = await import("../plugins/sandbox-kubernetes/dist/index.js");
  const tearDown = await setup();
  const dataFolder = await mkdtemp(join(tmpdir(), "ambit-walk-"));
  try {
    const { own, kubeconfig, image } = await testCluster();
    if (own === undefined) throw new Error("the walk needs a cluster of its own");
    const { name: namespace, remove } = await own.createNamespace();
    const api = own.api();
    await api.request("POST", `/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies`, {
      metadata: { name: "ambit-deny-all" },
      spec: { podSelector: {}, policyTypes: ["Ingress", "Egress"] },
    });
    api.close();
    const backend = new KubernetesSandbox(
      configSchema.parse({ kubeconfig, image, dataFolder, namespace, pull: "Never", cpus: 1, scratchMb: 64 }),
    );
    // As a server does, which probes before its first run.
    await backend.probe(scope.signal, ["filesystem.host-hidden"]);
    const files = await firstProcess(backend, new Counter());
    await backend.close();
    await remove();
    return new Set([...files, ...(await guestFiles())]);
  } finally {
    await tearDown?.();
    await rm(dataFolder, { recursive: true, force: true });
  }
}

/** The files of the guest daemon until its first process: its program with the names of its modules, started by this machine. */
async function guestFiles() {
  const { build } = await import("esbuild");
  const { insideProgram } = await import("./build/bundling.mjs");
  const { bridgeSchema, firstCommandOf, openRemoteSandbox } = await import(
    "../packages/bridge/dist/index.js"
  );
  const { probeSpec } = await import("../packages/backend-kit/dist/index.js");
  const bundled = await build({
    ...insideProgram,
    entryPoints: [join(root, "packages/bridge/dist/guest/main.js")],
    absWorkingDir: root,
    minifyWhitespace: false,
    write: false,
  });
  const program = Buffer.from(bundled.outputFiles[0]?.contents ?? []);
  const folder = await mkdtemp(join(tmpdir(), "ambit-walk-"));
  const bridge = bridgeSchema.parse({ folder, node: process.execPath, firstUser: 190_000 });
  const guest = { spec: probeSpec({}), bridge, unprivileged: true };
  const { argv, input } = await firstCommandOf(guest);
  const [shell, ...words] = argv.map((word) => word.replace(`)(${input.length},`, `)(${program.length},`));
  const env = { ...process.env, NODE_V8_COVERAGE: folder };
  // Its pipes are the kernel's, as behind a container's runtime.
  const pipes = ["-c", 'cat | "$@" | cat', "sh", shell ?? "", ...words];
  const child = spawn("/bin/sh", pipes, { env, stdio: ["pipe", "pipe", "inherit"] });
  /** @param {Uint8Array} bytes @returns {Promise<void>} */
  const write = (bytes) =>
    new Promise((resolve, reject) =>
      child.stdin.write(bytes, (error) => (error ? reject(error) : resolve())),
    );
  await write(program);
  const close = async () => void child.stdin.end();
  const firstPipe = { output: Readable.toWeb(child.stdout), write, close };
  const platform = {
    firstPipe,
    openBinaryPipe: () => Promise.reject(new Error("the walk has one pipe")),
    upload: async () => undefined,
    destroy: async () => undefined,
  };
  try {
    const sandbox = await openRemoteSandbox({ platform, ...guest, evidence: {} }, scope);
    await new Response((await sandbox.spawn(echo)).stdout).text();
    await sandbox.close();
    return filesInBundle(await countedBy(folder), program.toString());
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * What V8 writes to a folder as the guest daemon exits, after its pipe has ended.
 * @param {string} folder
 */
async function countedBy(folder) {
  for (let tries = 0; tries < 400; tries += 1) {
    const name = (await readdir(folder)).find((entry) => /^coverage-.*\.json$/.test(entry));
    const text = name === undefined ? "" : await readFile(join(folder, name), "utf8");
    // It is there before it is whole.
    if (text.endsWith("}")) return /** @type {{ result: readonly Script[] }} */ (JSON.parse(text)).result;
    await after(25);
  }
  throw new Error("the guest daemon didn't count its calls");
}

/** @param {readonly Script[]} scripts @param {string} text the program, in which a comment precedes each module. */
function filesInBundle(scripts, text) {
  const comments = text.matchAll(/^ *\/\/ (\S+\.js)$/gm);
  const modules = [...comments].map(({ index, 1: path = "" }) => ({ index, path }));
  const before = "(require => {".length;
  /** @type {Set<string>} */
  const files = new Set();
  const program = scripts.find(({ url }) => url.endsWith("/bridge.cjs"));
  for (const { ranges } of program?.functions ?? []) {
    const [range] = ranges;
    if (range === undefined || range.count === 0) continue;
    const module = modules.findLast(({ index }) => index <= range.startOffset - before);
    const source = module === undefined ? undefined : sourceOf(join(root, module.path));
    if (source !== undefined) files.add(source);
  }
  return files;
}

/** @typedef {{ url: string, headers: Record<string, string> }} Callee */

/**
 * A walk in a server with its defaults, probed as it is before its first run.
 * @param {(server: Callee, counter: Counter) => Promise<Files>} walk
 */
async function inServer(walk) {
  const { openAmbit, startServer, takeEnvironment } = await import("../server/dist/index.js");
  const folder = await mkdtemp(join(tmpdir(), "ambit-walk-"));
  process.env.AMBIT_SQLITE_FILE = join(folder, "runs.sqlite");
  if (process.getuid?.() !== 0) process.env.XDG_STATE_HOME = join(folder, "state");
  process.env.XDG_CACHE_HOME = join(folder, "cache");
  const environment = takeEnvironment({ AMBIT_PORT: "0", AMBIT_HEALTH_PORT: "0", AMBIT_AUTH: "none" });
  const ambit = await openAmbit({ environment, configuration: {}, logLevel: "error" });
  const server = await startServer(ambit);
  try {
    const callee = { url: server.url, headers: { "content-type": "application/json" } };
    // It waits for the probes.
    const body = runOf("say hello", {
      sandboxPermission: { network: { mode: "off" }, filesystem: "workspace" },
    });
    const planned = await fetch(`${callee.url}/plan`, { method: "POST", headers: callee.headers, body });
    if (!planned.ok) throw new Error(await planned.text());
    return await walk(callee, new Counter());
  } finally {
    await server.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/** @param {string} script the demo agent's. @param {object} more */
const runOf = (script, more = {}) =>
  JSON.stringify({ harness: "demo", messages: [{ role: "user", content: script }], ...more });

/** Posts a run, and returns its result. @param {Callee} callee @param {string} body */
async function postRun({ url, headers }, body) {
  const response = await fetch(`${url}/run`, { method: "POST", headers, body });
  const result = /** @type {{ ok: boolean }} */ (await response.json());
  if (!result.ok) throw new Error(JSON.stringify(result));
}

const runWalk = () =>
  inServer(async (callee, counter) => {
    counter.take();
    await postRun(callee, runOf("say hello"));
    return counter.take();
  });

/** Of each call, from the agent's request to its answer: the last one that begins before the callback, and ends after it. */
const callWalk = () =>
  inServer(async (callee, counter) => {
    /** @type {Files[]} */
    const calls = [];
    let isCalled = false;
    const platform = createServer((request, response) => {
      isCalled = true;
      request.resume().once("end", () => {
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify({ call: { id: "1", data: { content: "sunny" } } }));
      });
    });
    const { port } = await listening(platform);
    const isOurs = (/** @type {unknown} */ message) => isObject(message) && message.server !== platform;
    subscribe("http.server.request.start", (message) => {
      if (isOurs(message) && !isCalled) counter.take();
    });
    subscribe("http.server.response.finish", (message) => {
      if (!isOurs(message) || !isCalled) return;
      calls.push(counter.take());
      isCalled = false;
    });
    const tool = { name: "weather", callRef: "weather", description: "Says how it is.", permission: "allow" };
    const toolCallback = { endpoint: `http://127.0.0.1:${port}/call` };
    await postRun(callee, runOf(often("call weather {}"), { customTools: [tool], toolCallback }));
    platform.close();
    return inEach(calls);
  });

/** Some time passes between two, for what the run does beside them. @param {string} instruction of the demo agent */
const often = (instruction) => Array.from({ length: times }, () => `${instruction}\nsleep 100`).join("\n");
const times = 8;

/** @param {readonly Files[]} taken */
function inEach([first, ...others]) {
  if (first === undefined || others.length < times / 2)
    throw new Error(`it happened ${others.length} times of ${times}`);
  return others.reduce((common, files) => common.intersection(files), first);
}

/** @param {unknown} value @returns {value is { server?: unknown }} */
const isObject = (value) => typeof value === "object" && value !== null;

/** @param {import("node:http").Server} server */
async function listening(server) {
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return address;
}

/** Of each piece of the agent's text, from the one before to its line in the stream of the run. */
const eventWalk = () =>
  inServer(async ({ url, headers }, counter) => {
    const accept = { ...headers, accept: "application/x-ndjson" };
    const body = runOf(often("say word"));
    const response = await fetch(`${url}/run`, { method: "POST", headers: accept, body });
    /** @type {Files[]} */
    const events = [];
    for await (const bytes of response.body ?? [])
      if (Buffer.from(bytes).includes('"delta"')) events.push(counter.take());
    return inEach(events);
  });

const noCluster = () =>
  clusterFolder() === undefined ? "AMBIT_CLUSTER names no programs of a cluster" : undefined;

/** @type {readonly Walk[]} */
const walks = [
  { name: "run", title: "POST /run to its result, demo agent, defaults", goal: 110, make: runWalk },
  { name: "call", title: "One callback tool call", goal: 28, make: callWalk },
  { name: "local", title: "A local sandbox to its first process", goal: 30, make: localWalk },
  { name: "event", title: "One event from the agent to an HTTP reader", goal: 20, make: eventWalk },
  { name: "pod", title: "A pod to its first process", goal: 45, make: podWalk, whyNot: noCluster },
];

/** @param {Walk} walk */
async function measure(walk) {
  const files = [...(await walk.make())].sort();
  const lines = await Promise.all(
    files.map(async (path) => (await readFile(join(root, path), "utf8")).split("\n").length - 1),
  );
  const sum = lines.reduce((total, count) => total + count, 0);
  process.stdout.write(`${walk.title}: ${files.length} files, ${sum} lines; goal ${walk.goal} files\n`);
  for (const [index, path] of files.entries()) process.stdout.write(`  ${path} (${lines[index]})\n`);
}

const [word = "", isAlone] = process.argv.slice(2);
for (const walk of walks.filter(({ name, title }) => `${name} ${title}`.includes(word))) {
  const reason = walk.whyNot?.();
  if (reason !== undefined) process.stdout.write(`${walk.title}: not made, ${reason}\n`);
  else if (isAlone === "alone") {
    await measure(walk);
    // What a walk has started may keep the process alive.
    process.exit();
  } else {
    const child = fork(fileURLToPath(import.meta.url), [walk.name, "alone"]);
    const code = await new Promise((resolve) => child.once("close", resolve));
    if (code !== 0) process.exitCode = 1;
  }
}
