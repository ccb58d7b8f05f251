// needs: init
import { readdir } from "node:fs/promises";
import { beforeAll, describe, expect, it } from "vitest";
import {
  demo,
  emptyFolder,
  isMessage,
  ndjson,
  readUntil,
  recordsOf,
  resultOf,
  type Server,
  serve,
  startServer,
} from "./support/ambit.js";
import { callbackServer, callbackTool } from "./support/callback-server.js";
import { noPatience, ownData } from "./support/configurations.js";
import { descendantsOf, isAlive, running } from "./support/processes.js";

/** A sleep that nothing else on this machine sleeps: its argument is found in no other command line. */
let sleeps = 0;
function uniqueSleep(): string {
  sleeps += 1;
  return `sleep ${600_000 + process.pid}.${sleeps}`;
}

/** A run whose agent has started that sleep. */
async function runSleeping(server: Server, marker: string, ...before: string[]) {
  const abort = new AbortController();
  const response = await fetch(`${server.url}/run`, {
    method: "POST",
    headers: ndjson,
    body: JSON.stringify(demo(...before, "say at work", `run ${marker}`)),
    signal: abort.signal,
  });
  const records = recordsOf(response);
  await readUntil(records, isMessage("at work"));
  await expect.poll(() => running(marker).length, patience).toBeGreaterThan(0);
  return { records, abort };
}

const patience = { timeout: 15_000 };

describe("when a process is killed during a run", () => {
  /** For tests that it survives. */
  let survivor: Server;
  beforeAll(async () => {
    survivor = await startServer();
    return () => void survivor.process.kill("SIGKILL");
  });

  it("the client: the run is cancelled and leaves nothing", async () => {
    const server = survivor;
    const marker = uniqueSleep();
    const { abort } = await runSleeping(server, marker);
    abort.abort();
    await expect.poll(() => running(marker), patience).toEqual([]);
    await expect.poll(() => descendantsOf(server.pid), patience).toEqual([]);
    expect((await fetch(`${server.url}/health`)).status).toBe(200);
  });

  it("a client that waits for one result: the same", async () => {
    const server = survivor;
    const marker = uniqueSleep();
    const abort = new AbortController();
    const body = JSON.stringify(demo(`run ${marker}`));
    const answer = fetch(`${server.url}/run`, { method: "POST", body, signal: abort.signal });
    answer.catch(() => "is expected below");
    await expect.poll(() => running(marker).length, patience).toBeGreaterThan(0);
    abort.abort();
    await expect(answer).rejects.toThrow();
    await expect.poll(() => running(marker), patience).toEqual([]);
    await expect.poll(() => descendantsOf(server.pid), patience).toEqual([]);
  });

  it("the agent: the run fails with a clear message, and the agent's processes are gone", async () => {
    const server = survivor;
    const marker = uniqueSleep();
    const { records } = await runSleeping(server, marker);
    const agent = descendantsOf(server.pid).findLast(({ command }) =>
      command.includes("agents/demo/dist/bundle/"),
    );
    expect(agent).toBeDefined();
    process.kill(agent?.pid ?? 0, "SIGKILL");
    const result = await resultOf(records);
    expect(result).toMatchObject({ ok: false, failure: { code: "harness_failed" } });
    expect(result.error).toMatch(/agent|demo/);
    await expect.poll(() => running(marker), patience).toEqual([]);
  });

  it("the callback server: the tool fails for the model, and the run continues", async () => {
    const server = survivor;
    const platform = await callbackServer(() => new Promise(() => {}));
    const response = await server.post(
      "/run",
      {
        ...demo("call weather {}", "say still here"),
        customTools: [callbackTool("weather")],
        toolCallback: { endpoint: platform.endpoint },
      },
      ndjson,
    );
    await platform.called;
    platform.server.closeAllConnections();
    platform.server.close();
    const records = recordsOf(response);
    const failed = await readUntil(records, isMessage('"isError":true'));
    expect(JSON.stringify(failed)).toContain("Tool 'weather' failed");
    expect(await resultOf(records)).toMatchObject({ ok: true, output: "still here" });
  });

  it("the runner, by SIGTERM: every run ends with its result, then it exits with 0", async () => {
    const server = await serve({}, noPatience);
    const marker = uniqueSleep();
    const { records } = await runSleeping(server, marker);
    server.process.kill("SIGTERM");
    expect(await resultOf(records)).toMatchObject({
      ok: false,
      failure: { code: "run_cancelled", retryable: true },
      error: "The runner is shutting down.",
    });
    expect(await server.exit).toBe(0);
    expect(running(marker)).toEqual([]);
  });

  it("the runner's whole process group, twice at once: its run finishes, then it exits with 0", async () => {
    const server = await serve({}, undefined, { detached: true });
    const marker = `sleep 1.${process.pid}7`;
    const body = demo(`run ${marker}`, "say done");
    const records = recordsOf(await server.post("/run", body, ndjson));
    await expect.poll(() => running(marker).length, patience).toBeGreaterThan(0);
    process.kill(-server.pid, "SIGINT");
    process.kill(-server.pid, "SIGTERM");
    expect(await resultOf(records)).toMatchObject({ ok: true, output: "done" });
    expect(await server.exit).toBe(0);
  });

  it("the runner, by two SIGINTs: it exits at once", async () => {
    const server = await serve();
    const { records } = await runSleeping(server, uniqueSleep());
    server.process.kill("SIGINT");
    await expect.poll(() => server.log()).toContain("shutting down");
    // Repeated until it counts: a second signal right after the first is the same one.
    const again = setInterval(() => server.process.kill("SIGINT"), 100);
    expect(await server.exit).toBe(130);
    clearInterval(again);
    await expect(resultOf(records)).rejects.toThrow();
  });

  it("the runner, by SIGKILL: no process is left, and nothing after the next start", async () => {
    const folder = await emptyFolder();
    const env = { AMBIT_E2E_DATA: `${folder}/data` };
    const server = await serve(env, ownData);
    const marker = uniqueSleep();
    const { records } = await runSleeping(server, marker, "detach 900");
    const started = descendantsOf(server.pid).map(({ pid }) => pid);
    expect(started.length).toBeGreaterThan(0);
    server.process.kill("SIGKILL");
    await server.exit;
    await expect(resultOf(records)).rejects.toThrow();
    await expect.poll(() => running(marker), patience).toEqual([]);
    await expect.poll(() => started.filter((pid) => isAlive(pid)), patience).toEqual([]);
    const dead = await readdir(`${folder}/data/runners`);
    const next = await serve(env, ownData);
    expect(await (await next.post("/run", demo("say again"))).json()).toMatchObject({ ok: true });
    const kept = await readdir(`${folder}/data/runners`);
    expect(kept.filter((name) => dead.includes(name))).toEqual([]);
  });
});

describe("a command of git that a cancelled run had begun", () => {
  it("leaves no lock behind: the session's next run can commit, and is warned", async () => {
    const server = await serve();
    const asked = { sessionId: "committing", sandboxPermission: { network: "off", filesystem: "workspace" } };
    const slow = `sleep ${600_000 + process.pid}.9`;
    const begin = [
      "run git init -q . && echo '*.txt filter=slow' > .gitattributes && touch a.txt",
      `run git config filter.slow.clean '${slow}'`,
      "say at work",
      "run git add a.txt",
    ];
    const response = await server.post("/run", { ...demo(...begin), ...asked }, ndjson);
    const records = recordsOf(response);
    await readUntil(records, isMessage("at work"));
    await expect.poll(() => running(slow).length, patience).toBeGreaterThan(0);
    await server.post(`/runs/${response.headers.get("x-ambit-run-id")}/cancel`, "");
    await resultOf(records);

    const commit =
      "run git config --unset filter.slow.clean; git add -A && git -c user.name=a -c user.email=a@b commit -qm one && echo committed";
    const next = await server.post("/run", { ...demo(commit), ...asked });
    const result = JSON.parse(await next.text());
    expect(JSON.stringify(result.events)).toContain("committed");
    expect(result.warnings).toContainEqual({
      path: "workspace",
      message: expect.stringContaining("they were removed: .git/index.lock"),
    });
  });
});

describe("an agent that doesn't exit", () => {
  it("is ended with its run, and so are its processes", async () => {
    const server = await serve({}, noPatience);
    const response = await server.post("/run", demo("detach 900", "say at work", "deaf"), ndjson);
    const records = recordsOf(response);
    await readUntil(records, isMessage("at work"));
    await server.post(`/runs/${response.headers.get("x-ambit-run-id")}/cancel`, "");
    expect(await resultOf(records)).toMatchObject({ ok: true, stopReason: "cancelled" });
    await expect.poll(() => descendantsOf(server.pid), patience).toEqual([]);
  });
});
