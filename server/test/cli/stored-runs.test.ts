import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { HarnessFailed } from "@ambit/core/plugin";
import sqlite from "@ambit/store-sqlite";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { takeEnvironment } from "../../src/configuration/environment.js";
import { type RunningServer, startServer } from "../../src/http/listen.js";
import { openAmbit } from "../../src/open.js";
import { newToken } from "../../src/tenants/caller.js";
import { type Script, scriptedAgent } from "../support/scripted-agent.js";
import { asking, bodyOf } from "../support/server.js";

const program = fileURLToPath(new URL("../../bin/ambit.mjs", import.meta.url));
const [one, two] = [newToken(), newToken()];
let folder: string;
let server: RunningServer;
let paused: { readonly runId: string };

/** Asks for permission, and prints the answer. */
const cautious: Script = async function* ({ onPermission }) {
  const verdict = await onPermission({ toolCallId: "c1", toolName: "wipe", input: { path: "/tmp" } });
  if (verdict === "park") return;
  if (verdict === "deny") throw new HarnessFailed("It isn't allowed to work.");
  yield { type: "message", text: `wipe: ${verdict}` };
  yield { type: "done", stopReason: "end_turn" };
};

const turn = { ...asking, sessionId: "s", permissions: { default: "ask" } };

/** One server for all tests, with two projects. */
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "ambit-commands-"));
  const configuration = {
    plugins: [scriptedAgent(cautious), { use: sqlite, config: { file: join(folder, "runs.sqlite") } }],
    webhooks: { attempts: 1, privateHosts: "allow" as const },
    tokens: [
      { token: one.hash, project: "one", webhookSecret: `whsec_${"A".repeat(32)}` },
      { token: two.hash, project: "two" },
    ],
  };
  const environment = takeEnvironment({
    AMBIT_PORT: "0",
    AMBIT_LOG_LEVEL: "silent",
    AMBIT_TOKEN: operator,
  });
  server = await startServer(await openAmbit({ environment, configuration, logLevel: "silent" }));
  paused = await bodyOf(await post("/run", turn));
});

afterAll(async () => {
  await server.close();
  await rm(folder, { recursive: true });
});

function post(path: string, body: object, token = one.token) {
  const headers = { authorization: `Bearer ${token}` };
  return fetch(`${server.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
}

async function ambit(args: readonly string[], variables: NodeJS.ProcessEnv = {}) {
  const env = { PATH: process.env.PATH, AMBIT_ADDRESS: server.url, AMBIT_TOKEN: one.token, ...variables };
  const options = {
    env,
    extendEnv: false,
    stdin: "ignore",
    stripFinalNewline: false,
    reject: false,
  } as const;
  const { exitCode, stdout, stderr } = await execa(process.execPath, [program, ...args], options);
  return { code: exitCode, stdout, stderr };
}

const operator = "operators-own-token";
const asTwo = { AMBIT_TOKEN: two.token };
const nowhere = ["--url", "http://127.0.0.1:1"];

describe("ambit runs, attach, cancel, answer, deliveries and redeliver", () => {
  it("list a server's runs and questions, follow a run, and answer it for the next turn", async () => {
    const listed = await ambit(["runs", "--session", "s", "--json"]);
    const { runs, interactions } = JSON.parse(listed.stdout);
    expect(runs).toMatchObject([{ runId: paused.runId, state: "ended", sessionId: "s" }]);
    expect(interactions).toMatchObject([{ runId: paused.runId, payload: { toolName: "wipe" } }]);
    const [{ id }] = interactions;
    const [table, followed, streamed] = await Promise.all([
      ambit(["runs"]),
      ambit(["attach", paused.runId, "--timeline"]),
      ambit(["attach", paused.runId, "--stream"]),
    ]);
    const run = paused.runId.slice(0, 8);
    const question = `ask_${id.slice("ask_".length + 22).slice(0, 8)}`;
    expect(table.stdout).toMatch(
      new RegExp(`^${run} +✔ paused +scripted +s +1 open +(now|\\d+ s ago) +\\d`, "m"),
    );
    expect(table.stdout).toMatch(
      new RegExp(`^${question} +user_approval +${run} +wipe +(now|\\d+ s ago)$`, "m"),
    );
    const prefix = await ambit(["attach", run, "--json"]);
    expect(JSON.parse(prefix.stdout)).toMatchObject({ ok: true, stopReason: "paused" });
    expect(followed).toMatchObject({ code: 0, stderr: "" });
    expect(followed.stdout).toMatch(/asks .*wipe.*\n.*ends +paused/s);
    const records = streamed.stdout.trim().split("\n");
    expect(JSON.parse(records.at(-1) ?? "")).toMatchObject({
      kind: "result",
      result: { stopReason: "paused" },
    });
    expect(await ambit(["answer", question, "--approve"])).toEqual({
      code: 0,
      stderr: "",
      stdout: "answered; the next turn of session s uses it\n",
    });
    expect(await bodyOf(await post("/run", turn))).toMatchObject({ output: "wipe: allow" });
    const again = await ambit(["answer", id, "--approve"]);
    expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining(`no open question ${id}`) });
  });

  it("end a run early, which has its result", async () => {
    const held = { ...turn, runId: "held", sessionId: "h", detach: true, interactions: { waitMs: 60_000 } };
    expect((await post("/run", held)).status).toBe(202);
    expect(await ambit(["cancel", "held"])).toEqual({
      code: 0,
      stderr: "",
      stdout: "cancelled; `ambit attach held` shows its result\n",
    });
    const { stdout } = await ambit(["attach", "held", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({ ok: true, stopReason: "cancelled" });
  });

  it("list webhook messages, and send failed ones again", async () => {
    const webhook = { url: "http://127.0.0.1:1/", events: ["run.finished"] };
    await post("/run", { ...asking, permissions: { default: "allow" }, webhook });
    const failed = async () =>
      JSON.parse((await ambit(["deliveries", "--state", "failed", "--json"])).stdout).deliveries;
    await expect.poll(failed, { timeout: 15_000 }).toHaveLength(1);
    const [{ id }] = await failed();
    const table = await ambit(["deliveries"]);
    expect(table.stdout).toMatch(
      new RegExp(`^${id} +run.finished +failed +1 +127.0.0.1:1 .*ECONNREFUSED`, "m"),
    );
    const sent = { code: 0, stderr: "", stdout: `${id}: run.finished is sent to 127.0.0.1:1 again\n` };
    expect(await ambit(["redeliver", "--failed"])).toEqual(sent);
    expect(await ambit(["redeliver", id])).toEqual(sent);
    expect(await ambit(["redeliver", id.slice(0, 12)])).toEqual(sent);
  });

  it.each([
    ["a run to cancel that isn't there", ["cancel", "none"], {}, "There is no run 'none'"],
    ["an address without its scheme", ["runs", "--url", "127.0.0.1:1"], {}, "--url: must be an http://"],
    ["a run that isn't there", ["attach", "none"], {}, "There is no run 'none'"],
    ["a state that isn't one", ["runs", "--state", "done"], {}, "Allowed choices are queued, running, ended"],
    ["an answer that says nothing", ["answer", "ask_1"], {}, "say one of --approve, --deny and --output"],
    ["two answers", ["answer", "ask_1", "--approve", "--output", "1"], {}, "say one of"],
    ["a question that isn't there", ["answer", "ask_1", "--deny"], {}, "no open question ask_1"],
    ["a message that isn't there", ["redeliver", "none"], {}, "There is no delivery 'none'"],
    ["no message to send again", ["redeliver"], {}, "say --failed"],
    ["a wrong token", ["runs"], { AMBIT_TOKEN: "wrong" }, "set AMBIT_TOKEN"],
    ["no server, to list", ["runs", ...nowhere], {}, "start it with `ambit serve`"],
    ["no server, to follow", ["attach", "none", ...nowhere], {}, "start it with `ambit serve`"],
  ])("say what to do about %s", async (_, args, variables, message) => {
    const { code, stdout, stderr } = await ambit(args, variables);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(message);
    expect(stderr).not.toMatch(/\n {4}at /);
  });

  it("show another project's token nothing", async () => {
    const next = await bodyOf<{ runId: string }>(await post("/run", { ...turn, sessionId: "t" }));
    const own = JSON.parse((await ambit(["runs", "--session", "t", "--json"])).stdout);
    const others = await ambit(["runs", "--session", "nobody's", "--json"]);
    expect(JSON.parse(others.stdout)).toEqual({ runs: [], interactions: [] });
    expect(own.interactions).toMatchObject([{ runId: next.runId }]);
    const [all, followed, answered] = await Promise.all([
      ambit(["runs", "--json"], asTwo),
      ambit(["attach", next.runId], asTwo),
      ambit(["answer", own.interactions[0].id, "--approve"], asTwo),
    ]);
    expect(JSON.parse(all.stdout)).toEqual({ runs: [], interactions: [] });
    expect(followed).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringContaining("There is no run"),
    });
    expect(answered).toMatchObject({ code: 2, stderr: expect.stringContaining("no open question") });
  });

  it("list runs of several projects with one id, and of a project without a token, for the operator", async () => {
    const same = { ...asking, permissions: { default: "allow" }, runId: "same", sessionId: "several" };
    for (const token of [two.token, one.token]) await post("/run", same, token);
    await post("/run", { ...same, runId: "other", projectId: "none" }, operator);
    const page = async (query: string) => {
      const headers = { authorization: `Bearer ${operator}` };
      const listed = await fetch(`${server.url}/runs?sessionId=several&limit=1${query}`, { headers });
      return bodyOf<{ runs: { runId: string; projectId: string }[] }>(listed);
    };
    expect((await page("")).runs).toMatchObject([{ runId: "other", projectId: "none" }]);
    expect((await page("&after=none/other")).runs).toMatchObject([{ runId: "same", projectId: "one" }]);
    expect((await page("&after=one/same")).runs).toMatchObject([{ runId: "same", projectId: "two" }]);
    expect((await page("&after=two/same")).runs).toEqual([]);
    const { stdout, stderr } = await ambit(["runs", "--session", "several", "--json"], {
      AMBIT_TOKEN: operator,
    });
    expect(stderr).toBe("");
    const found: { runId: string }[] = JSON.parse(stdout).runs;
    expect(found.map(({ runId }) => runId)).toEqual(["other", "same", "same"]);
    const asOperator = (...args: string[]) => ambit(args, { AMBIT_TOKEN: operator });
    const table = await asOperator("runs", "--session", "several");
    expect(table.stdout).toMatch(/^run +project +outcome/);
    expect(table.stdout).toMatch(/^same +two +✔ end_turn/m);
    const ofOne = await asOperator("runs", "--project", "one", "--session", "several");
    expect(ofOne.stdout).toMatch(/^run +outcome.*\nsame +✔ end_turn.*\n$/);
  });

  it("list as many as asked for, only those that failed, and refuse an id that several begin with", async () => {
    const end = { ...asking, permissions: { default: "allow" } };
    for (const runId of ["lot-1", "lot-2", "lot-3"]) await post("/run", { ...end, runId, sessionId: "lot" });
    await post("/run", { ...asking, permissions: { default: "deny" }, runId: "lost", sessionId: "lot" });
    const listed = await ambit(["runs", "--session", "lot", "--limit", "2"]);
    expect(listed.stdout).toMatch(/^run .*\nlost .*\nlot-3 .*\n\nThe latest 2: `--limit` shows more.\n$/);
    const failed = await ambit(["runs", "--session", "lot", "--failed", "--json"]);
    expect(JSON.parse(failed.stdout).runs).toMatchObject([
      { runId: "lost", ok: false, failure: "harness_failed" },
    ]);
    const several = await ambit(["attach", "lot-"]);
    expect(several).toMatchObject({ code: 2, stdout: "" });
    expect(several.stderr).toContain("3 runs begin with 'lot-': type more of it: lot-3, lot-2, lot-1");
  });

  it("tell runs of one id apart by their project, for the operator", async () => {
    const held = {
      ...turn,
      runId: "twice",
      sessionId: "apart",
      detach: true,
      interactions: { waitMs: 60_000 },
    };
    for (const token of [one.token, two.token]) expect((await post("/run", held, token)).status).toBe(202);
    const asOperator = (...args: string[]) => ambit(args, { AMBIT_TOKEN: operator });
    for (const command of ["cancel", "attach"])
      expect((await asOperator(command, "twice")).stderr).toContain("several projects have a run 'twice'");
    expect((await asOperator("cancel", "twice", "--project", "two")).stdout).toBe(
      "cancelled; `ambit attach twice --project two` shows its result\n",
    );
    const { stdout } = await asOperator("attach", "twice", "--project", "two", "--json");
    expect(JSON.parse(stdout)).toMatchObject({ ok: true, stopReason: "cancelled" });
    const running = JSON.parse((await asOperator("runs", "--state", "running", "--json")).stdout).runs;
    expect(running).toMatchObject([{ runId: "twice", projectId: "one" }]);
    await asOperator("cancel", "twice", "--project", "one");
  });
});
