// needs: jail
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { RunResult } from "@ambit/core";
import { unavailableReason as whyNoDaytona } from "@ambit/daytona-loopback";
import { unavailableReason as whyNoRuntime } from "@ambit/docker-engine";
import { type ModelServer, startModelServer } from "@ambit/model-server";
import { ownUnavailableReason } from "@ambit/test-cluster";
import { expect, it } from "vitest";
import { bodyOf, demo, emptyFolder, repository, type Server, serve } from "../support/ambit.js";
import { containers, loopbackDaytona, type Place, pods } from "../support/backends/serve-from.js";

/** What a session's next run found. */
interface Row {
  readonly ending: string;
  readonly workspace: "kept" | "lost";
  readonly conversation: "kept" | "lost";
  /** The beginnings of the warnings about the session, and the failure of a refused run. */
  readonly said: string;
}

/** Each ending takes some seconds, of which a loaded machine makes many. */
const isWhole = process.env.AMBIT_WRITE_ENDINGS === "1" || process.env.AMBIT_SOAK !== undefined;
/** Sessions that are walked through at once. */
const atOnce = 4;
// Long enough for an agent on a busy machine to begin its turn.
const limits = { idleMs: 4_000, firstResponseMs: 8_000 };
const workspace = { maxBaseMiB: 1 };
const settings = { limits, workspace, server: { preview: { port: 0 } } };

/** One walk: a backend, and what all of its runs have. */
interface Walk {
  readonly place: Place;
  /** The strictest boundary that the backend has in every test. */
  readonly closed: { readonly network: "off"; readonly filesystem?: "workspace" };
  /** A model for agents that have one. Undefined where they aren't walked. */
  readonly model: ModelServer | undefined;
}

interface Send {
  (request: object): Promise<RunResult>;
  readonly server: Server;
}

const sender = ({ place, closed }: Walk, server: Server): Send =>
  Object.assign(
    async (request: object) => {
      const { sandbox } = place;
      return bodyOf(await server.post("/run", { sandbox, sandboxPermission: closed, ...request }));
    },
    { server },
  );

interface Ending {
  readonly ending: string;
  /** Between the run that wrote a file and the one that looks for it. */
  act?(send: Send, session: string, walk: Walk): Promise<unknown>;
  /** Of the run that begins. */
  first?(walk: Walk): object;
  /** Of the run that looks. */
  next?(walk: Walk): object;
  /** Walked on every backend each time, others only where the table is written or with AMBIT_SOAK. Default false. */
  readonly isBrief?: boolean;
  /** The session that is looked at. Default: the one that began. */
  looked?(session: string): string;
}

const failing = (...script: readonly string[]): Ending["act"] => {
  return async (send, sessionId) => {
    expect(await send({ ...demo(...script), sessionId })).toMatchObject({ ok: false });
  };
};

const withCredential = ({ closed }: Walk, value: string) => ({
  sandboxPermission: {
    ...closed,
    network: { mode: "allowlist", allowlist: ["api.example.com"] },
  },
  credentials: [{ name: "TOKEN", value, hosts: ["api.example.com"], as: "bearer" }],
});

const withMemory = ({ closed }: Walk) => ({
  sandboxPermission: { ...closed, resources: { memoryMb: 1_024 } },
});

/** A run of an agent that asks the walk's model, which does what the markers say. */
function piWith({ model }: Walk, ...markers: readonly string[]) {
  return {
    harness: "pi",
    permissions: { default: "allow" },
    messages: [{ role: "user", content: markers.join(" ") }],
    modelConnection: {
      provider: "openai",
      deployment: "direct",
      credentialMode: "env",
      endpoint: { baseUrl: `${model?.url}/v1` },
      credentials: [
        {
          binding: { kind: "environment", name: "OPENAI_API_KEY" },
          value: "test-key",
          usage: "opaque_http",
        },
      ],
    },
  };
}

/** A failure of the model that the agent of the whole session has. */
const modelFailing = (ending: string, marker: string, code: string, more: object = {}): Ending => ({
  ending,
  first: (walk) => piWith(walk, "[[shell printf precious > a.txt]]", "[[say begun]]"),
  act: async (send, sessionId, walk) => {
    const failed = await send({ ...piWith(walk, marker), sessionId, ...more });
    expect(failed.failure?.code, JSON.stringify(failed)).toBe(code);
  },
  next: (walk) => piWith(walk, "[[shell cat a.txt]]"),
});

const agentEndings: readonly Ending[] = [
  modelFailing("the model answers 429", "[[http 429]]", "model_failed"),
  modelFailing("the model answers 500", "[[http 500]]", "model_failed"),
  modelFailing("the model answers 401", "[[http 401]]", "model_failed"),
  modelFailing("the model drops its connection", "[[drop]]", "model_failed"),
  modelFailing("`budget_exceeded`", "[[shell true]] [[shell true]]", "budget_exceeded", {
    budget: { requests: 1 },
  }),
  {
    ending: "another `harness`, and back",
    act: async (send, sessionId, walk) => {
      const other = await send({ ...piWith(walk, "[[shell cat a.txt]]"), sessionId });
      expect(JSON.stringify(other.events)).toContain("precious");
    },
  },
];

const endings: readonly Ending[] = [
  { ending: "ok" },
  {
    ending: "refusal, `max_tokens`",
    act: (send, sessionId) => send({ ...demo("stop refusal"), sessionId }),
  },
  {
    ending: "paused",
    act: async (send, sessionId) => {
      const asking = { ...demo("run ls"), permissions: { default: "ask" }, sessionId };
      expect(await send(asking)).toMatchObject({ stopReason: "paused" });
    },
  },
  {
    ending: "an invalid request",
    act: async (send, sessionId) => {
      const invalid = await send({ ...demo("say x"), sessionId, unknown: 1 });
      expect(invalid.failure?.code).toBe("request_invalid");
    },
  },
  {
    ending: "cancelled by its caller",
    isBrief: true,
    act: async (send, sessionId) => {
      const runId = `cancelled-${sessionId}`;
      const run = send({ ...demo("say begun", "sleep 60000"), runId, sessionId });
      await expect
        .poll(async () => (await send.server.post(`/runs/${runId}/cancel`, "")).status, { timeout: 30_000 })
        .toBeLessThan(300);
      expect(await run).toMatchObject({ stopReason: "cancelled" });
    },
  },
  { ending: "an error of the agent", act: failing("fail no luck") },
  { ending: "a crash of the agent", isBrief: true, act: failing("crash out of memory") },
  { ending: "a message of the agent that is too long", act: failing("big 9000000") },
  { ending: "`run_timed_out`, and the agent ends its turn", act: failing("hang") },
  {
    ending: "`run_timed_out`, and the agent has to be killed",
    isBrief: true,
    act: failing("detach", "deaf"),
  },
  {
    ending: "`outputs_failed`",
    act: async (send, sessionId) => {
      const large = { ...demo("run head -c 2000000 /dev/zero > large", "say x"), sessionId };
      await send(large);
      const failed = await send({ ...demo("say x"), sessionId, outputs: { patch: true } });
      expect(failed.failure?.code).toBe("outputs_failed");
    },
  },
  {
    ending: '`conversation: "new"`',
    next: () => ({ conversation: "new" }),
  },
  { ending: "another `sandboxPermission.resources`", next: withMemory },
  {
    ending: "another `sandboxPermission.network`",
    next: ({ closed }) => ({ sandboxPermission: { ...closed, network: "on" } }),
  },
  {
    ending: '`sandboxPermission.filesystem: "readonly"`',
    next: ({ closed }) => ({ sandboxPermission: { ...closed, filesystem: "readonly" } }),
  },
  {
    ending: "another `sandboxPermission.secrets`",
    next: ({ closed }) => ({ sandboxPermission: { ...closed, secrets: "hidden" } }),
  },
  { ending: "other `ports`", next: () => ({ ports: [{ port: 4_000, name: "web" }] }) },
  {
    ending: "another boundary, and back",
    isBrief: true,
    act: async (send, sessionId, walk) => {
      const sandboxPermission = { ...walk.closed, network: "on" };
      const other = await send({ ...demo("run cat a.txt"), sessionId, sandboxPermission });
      expect(JSON.stringify(other), send.server.log()).toContain("precious");
    },
  },
  {
    ending: "another value in `credentials`",
    first: (walk) => withCredential(walk, "one-value-0123456789"),
    next: (walk) => withCredential(walk, "another-value-0123"),
  },
  {
    ending: "another value in `credentials`, and back",
    isBrief: true,
    first: (walk) => withCredential(walk, "one-value-0123456789"),
    act: (send, sessionId, walk) =>
      send({ ...demo("say x"), sessionId, ...withCredential(walk, "another-value-0123") }),
    next: (walk) => withCredential(walk, "one-value-0123456789"),
  },
  {
    ending: "a fork whose first run fails",
    isBrief: true,
    act: async (send, session) => {
      const forked = { ...demo("fail no luck"), sessionId: `${session}-fork`, fork: { session } };
      expect(await send(forked)).toMatchObject({ ok: false });
    },
    looked: (session) => `${session}-fork`,
  },
];

/** Through all endings, with as many sessions at once as `atOnce` says, and then two of the server itself. */
async function walkThrough(walk: Walk): Promise<readonly Row[]> {
  const { place, model } = walk;
  const server = await place.start({ AMBIT_PORT: "0" });
  const send = sender(walk, server);
  const possible = model === undefined ? endings : [...endings, ...agentEndings];
  const walked = isWhole || place.sandbox === "local" ? possible : possible.filter(({ isBrief }) => isBrief);
  const rows: Row[] = [];
  let next = 0;
  const walker = async () => {
    for (let index = next++; index < walked.length; index = next++) {
      const ending = walked[index];
      if (ending === undefined) return;
      const session = `s${index}`;
      await begin(send, session, ending.first?.(walk));
      await ending.act?.(send, session, walk);
      const found = await look(send, ending.looked?.(session) ?? session, ending.next?.(walk));
      rows[index] = rowOf(ending.ending, found);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, walker));
  await begin(send, "restarted");
  server.process.kill("SIGTERM");
  await server.exit;
  const { port: AMBIT_PORT } = new URL(server.url);
  const another = await place.start({ AMBIT_PORT });
  const anotherSend = sender(walk, another);
  rows.push(rowOf("the server stops", await look(anotherSend, "restarted")));
  await begin(anotherSend, "killed");
  another.process.kill("SIGKILL");
  await another.exit;
  const last = await place.start({ AMBIT_PORT });
  const lastSend = sender(walk, last);
  rows.push(rowOf("the server is killed", await look(lastSend, "killed")));
  // It was said once.
  expect((await look(lastSend, "killed")).warnings).toBeUndefined();
  return rows;
}

async function begin(send: Send, sessionId: string, more: object = {}) {
  const begun = await send({ ...demo("write a.txt precious", "say begun"), sessionId, ...more });
  expect(begun, `${JSON.stringify(begun)}\n${send.server.log()}`).toMatchObject({
    ok: true,
    output: "begun",
  });
}

const look = (send: Send, sessionId: string, more: object = {}) =>
  send({ ...demo("run cat a.txt", "recall"), sessionId, ...more });

/** Whether it was the conversation of the run that began. */
function remembers({ receipt, output = "" }: RunResult): boolean {
  const isContinued = ["warm", "loaded"].includes(receipt?.session?.history ?? "");
  // The demo agent says what it remembers.
  const isDemo = receipt?.actors.some(({ kind, name }) => kind === "harness" && name === "demo") === true;
  if (isDemo) expect(output.includes("write a.txt precious")).toBe(isContinued);
  return isContinued;
}

function rowOf(ending: string, result: RunResult): Row {
  if (!result.ok) {
    const said = result.failure?.code ?? "";
    // The session is as it was.
    return { ending, workspace: "kept", conversation: "kept", said: `the run is refused: \`${said}\`` };
  }
  const output = JSON.stringify(result.events.filter(({ type }) => type === "tool_result"));
  const said = (result.warnings ?? [])
    .filter(({ path }) => path === "sessionId")
    .map(
      ({ message }) =>
        message.replace(/^is a session (whose|that) /, "").split(/, and messages|: its workspace/)[0] ?? "",
    );
  return {
    ending,
    workspace: output.includes("precious") ? "kept" : "lost",
    conversation: remembers(result) ? "kept" : "lost",
    said: said.length === 0 ? "–" : said.join("; "),
  };
}

const headings = "the run before | workspace | conversation | said";
const lineOf = ({ ending, workspace, conversation, said }: Row) =>
  `${ending} | ${workspace} | ${conversation} | ${said}`;

function tableOf(rows: readonly Row[]): string {
  const lines = rows.map((row) => `| ${lineOf(row)} |`);
  return [`| ${headings} |`, "|---|---|---|---|", ...lines].join("\n");
}

/** The rows that differ from the local sandbox's, whose table the page has. @param backend for one that wasn't walked whole */
function differencesOf(backend: string, rows: readonly Row[]): string {
  const local = partOf("local");
  const found = rows.map((row) => `| ${lineOf(row)} |`).filter((line) => !local.includes(line));
  const isWalked = (line: string) => rows.some(({ ending }) => line.startsWith(`| ${ending} |`));
  const other = isWhole ? [] : rowsIn(partOf(backend)).filter((line) => !isWalked(line));
  // In the order of the local table.
  const lines = rowsIn(local).flatMap((line) => {
    const ending = line.slice(0, line.indexOf(" |") + 2);
    return [...found, ...other].filter((one) => one.startsWith(ending));
  });
  if (lines.length === 0) return "The same.";
  return [`| ${headings} |`, "|---|---|---|---|", ...lines].join("\n");
}

const rowsIn = (part: string) => part.split("\n").slice(2);
const page = join(repository, "docs/reliability.md");
const marksOf = (backend: string) =>
  [
    `<!-- endings on ${backend}: generated by scripts/docs/endings.mjs -->\n\n`,
    `\n\n<!-- end of the endings on ${backend} -->`,
  ] as const;

function placeOf(text: string, backend: string): readonly [start: number, end: number] {
  const [begin, end] = marksOf(backend);
  const [start, stop] = [text.indexOf(begin), text.indexOf(end)];
  if (start === -1 || stop === -1) throw new Error(`${page} has no place for the endings on ${backend}`);
  return [start + begin.length, stop];
}

function partOf(backend: string): string {
  const text = readFileSync(page, "utf8");
  return text.slice(...placeOf(text, backend));
}

/** @param part what the page says of a backend; written there where the script asks for it. */
function expectPart(backend: string, part: string): void {
  if (process.env.AMBIT_WRITE_ENDINGS === "1") {
    const text = readFileSync(page, "utf8");
    const [start, end] = placeOf(text, backend);
    writeFileSync(page, `${text.slice(0, start)}${part}${text.slice(end)}`);
  }
  expect(part).toBe(partOf(backend));
}

function expectSaid(rows: readonly Row[]): void {
  const asked = 'conversation: "new"';
  const unsaid = rows.filter(
    ({ ending, workspace, conversation, said }) =>
      !ending.includes(asked) && (workspace === "lost" || conversation === "lost") && said === "–",
  );
  expect(unsaid).toEqual([]);
}

/** Of servers that share their store and data. */
async function stored(): Promise<Record<string, string>> {
  const folder = await emptyFolder();
  return { AMBIT_SQLITE_FILE: join(folder, "runs.sqlite"), AMBIT_BLOBS_FOLDER: join(folder, "blobs") };
}

const closed = { network: "off", filesystem: "workspace" } as const;
const patience = { timeout: isWhole ? 900_000 : 300_000 };

it("what a session keeps is as docs/reliability.md says, and every loss is said", patience, async () => {
  await using model = await startModelServer();
  const config = join(await emptyFolder(), "config.json");
  const own = { ...settings, probes: { keepAcrossRestarts: true }, extends: "defaults" };
  writeFileSync(config, JSON.stringify(own));
  const shared = await stored();
  const start = (env: object = {}) => serve({ ...shared, ...env }, ["--config", config]);
  const rows = await walkThrough({ place: { sandbox: "local", start }, closed, model });
  expectSaid(rows);
  expectPart("local", tableOf(rows));
});

/** The settings of a configuration that has no store. */
const withStore = { ...settings, plugins: ["@ambit/store-sqlite"] };

async function sharing(place: Place): Promise<Place> {
  const shared = await stored();
  return { ...place, start: (env) => place.start({ ...shared, ...env }) };
}

it("a session in a container keeps the same, or the page says what differs", patience, async (context) => {
  const missing = whyNoRuntime("runc");
  if (missing !== undefined) context.skip(`host: ${missing}`);
  await using model = await startModelServer();
  const rows = await walkThrough({ place: await sharing(await containers(withStore)), closed, model });
  expectSaid(rows);
  expectPart("Docker", differencesOf("Docker", rows));
});

it("a session in a pod keeps the same, or the page says what differs", patience, async (context) => {
  const missing = await ownUnavailableReason();
  if (missing !== undefined) context.skip(`host: ${missing}`);
  const rows = await walkThrough({ place: await sharing(await pods(withStore)), closed, model: undefined });
  expectSaid(rows);
  expectPart("Kubernetes", differencesOf("Kubernetes", rows));
});

it("a session on Daytona keeps the same, or the page says what differs", patience, async (context) => {
  const missing = whyNoDaytona();
  if (missing !== undefined) context.skip(`host: ${missing}`);
  const rows = await walkThrough({
    place: await sharing(await loopbackDaytona(withStore)),
    closed: { network: "off" },
    model: undefined,
  });
  expectSaid(rows);
  expectPart("Daytona", differencesOf("Daytona", rows));
});
