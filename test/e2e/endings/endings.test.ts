import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { RunResult } from "@ambit/core";
import { expect, it } from "vitest";
import { bodyOf, demo, emptyFolder, repository, type Server, serve } from "../support/ambit.js";

/** What a session's next run found. */
interface Row {
  readonly ending: string;
  readonly workspace: "kept" | "lost";
  readonly conversation: "kept" | "lost";
  /** The beginnings of the warnings about the session, and the failure of a refused run. */
  readonly said: string;
}

/** Sessions that are walked through at once. */
const atOnce = 4;
// Long enough for an agent on a busy machine to begin its turn.
const limits = { idleMs: 4_000 };
const workspace = { maxBaseMiB: 1 };
const closed = { network: "off", filesystem: "workspace" };

/** Where the runs of one table happen. */
interface Place {
  readonly sandbox: string;
  /** Starts a server. Several share their store and data. @param port default: any */
  start(port?: string): Promise<Server>;
}

type Send = (request: object) => Promise<RunResult>;

function sender(server: Server, sandbox: string): Send {
  return async (request) =>
    bodyOf(await server.post("/run", { sandbox, sandboxPermission: closed, ...request }));
}

interface Ending {
  readonly ending: string;
  /** Between the run that wrote a file and the one that looks for it. */
  act?(send: Send, server: Server, session: string): Promise<unknown>;
  /** Of the run that begins. */
  readonly first?: object;
  /** Of the run that looks. */
  readonly next?: object;
}

const failing = (...script: readonly string[]): Ending["act"] => {
  return async (send, _server, sessionId) => {
    expect(await send({ ...demo(...script), sessionId })).toMatchObject({ ok: false });
  };
};

const withCredential = (value: string) => ({
  sandboxPermission: {
    network: { mode: "allowlist", allowlist: ["api.example.com"] },
    filesystem: "workspace",
  },
  credentials: [{ name: "TOKEN", value, hosts: ["api.example.com"], as: "bearer" }],
});

const endings: readonly Ending[] = [
  { ending: "ok" },
  {
    ending: "refusal, `max_tokens`",
    act: (send, _server, sessionId) => send({ ...demo("stop refusal"), sessionId }),
  },
  {
    ending: "paused",
    act: async (send, _server, sessionId) => {
      const asking = { ...demo("run ls"), permissions: { default: "ask" }, sessionId };
      expect(await send(asking)).toMatchObject({ stopReason: "paused" });
    },
  },
  {
    ending: "an invalid request",
    act: async (send, _server, sessionId) => {
      const invalid = await send({ ...demo("say x"), sessionId, unknown: 1 });
      expect(invalid.failure?.code).toBe("request_invalid");
    },
  },
  {
    ending: "cancelled by its caller",
    act: async (send, server, sessionId) => {
      const runId = `cancelled-${sessionId}`;
      const run = send({ ...demo("say begun", "sleep 60000"), runId, sessionId });
      await expect
        .poll(async () => (await server.post(`/runs/${runId}/cancel`, "")).status, { timeout: 30_000 })
        .toBeLessThan(300);
      expect(await run).toMatchObject({ stopReason: "cancelled" });
    },
  },
  { ending: "an error of the agent", act: failing("fail no luck") },
  { ending: "a crash of the agent", act: failing("crash out of memory") },
  { ending: "a message of the agent that is too long", act: failing("big 9000000") },
  { ending: "`run_timed_out`, and the agent ends its turn", act: failing("hang") },
  { ending: "`run_timed_out`, and the agent has to be killed", act: failing("detach", "deaf") },
  {
    ending: "`outputs_failed`",
    act: async (send, _server, sessionId) => {
      const large = { ...demo("run head -c 2000000 /dev/zero > large", "say x"), sessionId };
      await send(large);
      const failed = await send({ ...demo("say x"), sessionId, outputs: { patch: true } });
      expect(failed.failure?.code).toBe("outputs_failed");
    },
  },
  {
    ending: '`conversation: "new"`',
    next: { conversation: "new" },
  },
  {
    ending: "another `sandboxPermission.resources`",
    next: { sandboxPermission: { ...closed, resources: { memoryMb: 1_024 } } },
  },
  {
    ending: "another `sandboxPermission.network`",
    next: { sandboxPermission: { filesystem: "workspace", network: "on" } },
  },
  {
    ending: '`sandboxPermission.filesystem: "readonly"`',
    next: { sandboxPermission: { network: "off", filesystem: "readonly" } },
  },
  {
    ending: "another boundary, and back",
    act: (send, _server, sessionId) =>
      send({
        ...demo("say x"),
        sessionId,
        sandboxPermission: { ...closed, resources: { memoryMb: 1_024 } },
      }),
  },
  {
    ending: "another value in `credentials`",
    first: withCredential("one-value-0123456789"),
    next: withCredential("another-value-0123"),
  },
  {
    ending: "a fork whose first run fails",
    act: async (send, _server, session) => {
      const forked = { ...demo("fail no luck"), sessionId: `${session}-fork`, fork: { session } };
      expect(await send(forked)).toMatchObject({ ok: false });
    },
  },
];

async function walk(place: Place): Promise<readonly Row[]> {
  const server = await place.start();
  const send = sender(server, place.sandbox);
  const rows: Row[] = [];
  const row = async ({ ending, act, first, next }: Ending, index: number): Promise<Row> => {
    const sessionId = `s${index}`;
    await begin(send, sessionId, first);
    await act?.(send, server, sessionId);
    const looked = ending.startsWith("a fork") ? `${sessionId}-fork` : sessionId;
    return rowOf(ending, await look(send, looked, next));
  };
  for (let from = 0; from < endings.length; from += atOnce)
    rows.push(
      ...(await Promise.all(endings.slice(from, from + atOnce).map((one, at) => row(one, from + at)))),
    );
  await begin(send, "restarted");
  server.process.kill("SIGTERM");
  await server.exit;
  const { port } = new URL(server.url);
  const another = await place.start(port);
  rows.push(rowOf("the server stops", await look(sender(another, place.sandbox), "restarted")));
  await begin(sender(another, place.sandbox), "killed");
  another.process.kill("SIGKILL");
  await another.exit;
  const last = await place.start(port);
  const lastSend = sender(last, place.sandbox);
  rows.push(rowOf("the server is killed", await look(lastSend, "killed")));
  // It was said once.
  expect((await look(lastSend, "killed")).warnings).toBeUndefined();
  return rows;
}

async function begin(send: Send, sessionId: string, more: object = {}) {
  const begun = await send({ ...demo("write a.txt precious", "say begun"), sessionId, ...more });
  expect(begun).toMatchObject({ ok: true, output: "begun" });
}

const look = (send: Send, sessionId: string, more: object = {}) =>
  send({ ...demo("run cat a.txt", "recall"), sessionId, ...more });

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
    conversation: (result.output ?? "").includes("write a.txt precious") ? "kept" : "lost",
    said: said.length === 0 ? "–" : said.join("; "),
  };
}

function tableOf(rows: readonly Row[]): string {
  const lines = rows.map(
    ({ ending, workspace, conversation, said }) => `| ${ending} | ${workspace} | ${conversation} | ${said} |`,
  );
  return ["| the run before | workspace | conversation | said |", "|---|---|---|---|", ...lines].join("\n");
}

const page = join(repository, "docs/reliability.md");
const marks = [
  "<!-- endings: generated by scripts/docs/endings.mjs -->\n\n",
  "\n\n<!-- end of the endings -->",
];

function withTable(text: string, table: string): string {
  const [begin = "", end = ""] = marks;
  const [start, stop] = [text.indexOf(begin), text.indexOf(end)];
  if (start === -1 || stop === -1) throw new Error(`${page} has no place for the endings`);
  return `${text.slice(0, start)}${begin}${table}${text.slice(stop)}`;
}

function expectSaid(rows: readonly Row[]): void {
  const asked = 'conversation: "new"';
  const unsaid = rows.filter(
    ({ ending, workspace, conversation, said }) =>
      !ending.includes(asked) && (workspace === "lost" || conversation === "lost") && said === "–",
  );
  expect(unsaid).toEqual([]);
}

it("what a session keeps is as docs/reliability.md says, and every loss is said", {
  timeout: 300_000,
}, async () => {
  const folder = await emptyFolder();
  const config = join(folder, "config.json");
  const own = { limits, workspace, probes: { keepAcrossRestarts: true }, extends: "defaults" };
  writeFileSync(config, JSON.stringify(own));
  const env = { AMBIT_SQLITE_FILE: join(folder, "runs.sqlite"), AMBIT_BLOBS_FOLDER: join(folder, "blobs") };
  const rows = await walk({
    sandbox: "local",
    start: (port = "0") => serve({ ...env, AMBIT_PORT: port }, ["--config", config]),
  });
  expectSaid(rows);
  const table = tableOf(rows);
  if (process.env.AMBIT_WRITE_ENDINGS === "1")
    writeFileSync(page, withTable(readFileSync(page, "utf8"), table));
  expect(readFileSync(page, "utf8")).toContain(table);
});
