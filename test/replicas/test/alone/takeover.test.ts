import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "@ambit/backend-kit";
import { type LoopbackDaytona, startLoopbackDaytona, unavailableReason } from "@ambit/daytona-loopback";
import { type Postgres, postgresIsMissing, startPostgres } from "@ambit/test-postgres";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { Replica } from "../cluster.js";

const resultSchema = z.object({
  ok: z.boolean(),
  output: z.string().optional(),
  warnings: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
  failure: z.looseObject({ code: z.string() }).optional(),
});

/** Hosts on the loopback's own network, which the probe tries. */
const world = ["address", "name", "other"].map((name, index) => ({
  name: `${name}.example.test`,
  address: `10.99.0.${10 + index}`,
  ports: [80, 7_777],
}));
const canary = {
  address: "10.99.0.10:80",
  name: "name.example.test:80",
  address6: "[fd99::10]:80",
  forbidden: ["other.example.test:80", "10.99.0.12:7777"],
  attemptMs: 1_200,
  settleMs: 0,
};

describe("a session whose sandbox is remote", { timeout: 60_000 }, () => {
  const missing = postgresIsMissing() ?? unavailableReason();
  const cleaning: (() => Promise<unknown>)[] = [];
  const replicas: Replica[] = [];
  let daytona: LoopbackDaytona | undefined;
  let postgres: Postgres | undefined;

  beforeAll(async () => {
    if (missing !== undefined) return;
    const folder = await mkdtemp(join(tmpdir(), "ambit-takeover-"));
    cleaning.push(() => rm(folder, { recursive: true, force: true }));
    await writeFile(join(folder, "key"), randomBytes(32).toString("base64"), { mode: 0o600 });
    const snapshots = { root: { user: "root" as const } };
    daytona = await startLoopbackDaytona({ snapshots, world, startDelayMs: 0, sessionGraceMs: 200 });
    postgres = await startPostgres();
    for (const name of ["one", "two"]) {
      const { apiKey, apiUrl } = daytona;
      // Its own data folder, as on another host.
      const settings = { apiKey, apiUrl, canary, snapshot: "root", dataFolder: join(folder, name) };
      const environment = {
        AMBIT_POSTGRES_URL: postgres.url,
        AMBIT_TEST_DAYTONA: JSON.stringify(settings),
        AMBIT_TEST_KEY: join(folder, "key"),
      };
      const url = `http://127.0.0.1:${await freePort()}`;
      replicas.push(new Replica(url, environment, false, "./takeover.config.mjs"));
    }
    await Promise.all(replicas.map((replica) => replica.start()));
  }, 60_000);
  afterAll(async () => {
    await Promise.all(replicas.map((replica) => replica.kill()));
    await postgres?.stop();
    await daytona?.close();
    for (const clean of cleaning) await clean();
  });
  beforeEach((context) => {
    if (missing !== undefined) context.skip(`host: ${missing}`);
  });

  const pair = () => {
    const [one, two] = replicas;
    if (one === undefined || two === undefined) throw new Error("the replicas aren't there");
    return { one, two };
  };
  const ask = (replica: Replica, sessionId: string, line: string, more: object = {}) =>
    fetch(`${replica.url}/run`, {
      method: "POST",
      body: JSON.stringify({
        sessionId,
        sandbox: "daytona",
        messages: [{ role: "user", content: line }],
        ...more,
      }),
    });
  const said = async (response: Promise<Response>) => resultSchema.parse(await (await response).json());
  /** Waits until the other replica's lease has expired. */
  const saidSoon = async (replica: Replica, sessionId: string, line: string, more: object = {}) => {
    let result: z.output<typeof resultSchema> | undefined;
    await expect
      .poll(
        async () => {
          const response = await ask(replica, sessionId, line, more);
          if (response.status === 200) result = resultSchema.parse(await response.json());
          else await response.body?.cancel();
          return response.status;
        },
        { timeout: 40_000, interval: 200 },
      )
      .toBe(200);
    return result;
  };

  /** The id of the session's current run. */
  const running = async (replica: Replica, sessionId: string) => {
    let id: string | undefined;
    const list = z.object({ runs: z.array(z.object({ runId: z.string() })) });
    await expect
      .poll(async () => {
        const found = await fetch(`${replica.url}/runs?sessionId=${sessionId}&state=running`);
        id = list.parse(await found.json()).runs[0]?.runId;
        return id;
      })
      .toBeDefined();
    return id;
  };

  it("moves to the replica that gets its next run, and back, with its workspace and conversation", async () => {
    const { one, two } = pair();
    const begun = await said(ask(one, "moves", "echo first > kept && echo $RESUMED"));
    expect(begun, JSON.stringify(begun)).toMatchObject({
      ok: true,
      output: "none",
    });
    const second = await said(ask(two, "moves", "cat kept; echo $RESUMED; echo second > kept"));
    expect(second).toMatchObject({ ok: true, output: expect.stringMatching(/^first\nbegun by \d+$/) });
    expect(second.warnings).toBeUndefined();
    expect(await said(ask(one, "moves", "cat kept"))).toMatchObject({ ok: true, output: "second" });
    // One sandbox, of the third owner.
    const fences = daytona?.sandboxes().flatMap(({ labels }) => labels["ambit-fence"] ?? []);
    expect(fences).toEqual(["3"]);
  });

  it("takes its credentials along for redaction, and stores none in readable form", async () => {
    const { one, two } = pair();
    const secret = "of-the-first-run-40417";
    const toolCallback = { endpoint: "http://127.0.0.1:9/", authorization: `Bearer ${secret}` };
    // The sandbox has it, regardless of which replica takes over the session.
    const response = await said(ask(one, "indiscreet", `echo ${secret} > kept`, { toolCallback }));
    expect(response).toMatchObject({ ok: true });
    const later = await said(ask(two, "indiscreet", "cat kept; echo redacted?"));
    expect(later).toMatchObject({ ok: true, output: expect.stringContaining("redacted?") });
    expect(later.output).not.toContain(secret);
    const files = await readdir(postgres?.folder ?? "", { recursive: true, withFileTypes: true });
    const contents = await Promise.all(
      files.filter((file) => file.isFile()).map(({ parentPath, name }) => readFile(join(parentPath, name))),
    );
    const holds = (text: string) => contents.some((content) => content.includes(text));
    expect([holds("indiscreet"), holds(secret)]).toEqual([true, false]);
  });

  it("ignores its earlier replica if that one returns", async () => {
    const { one, two } = pair();
    expect(await said(ask(one, "stopped", "echo kept > kept"))).toMatchObject({ ok: true });
    const late = ask(one, "stopped", "while :; do echo late >> kept; sleep 0.05; done").catch(
      () => undefined,
    );
    await running(two, "stopped");
    one.signal("SIGSTOP");
    const count = "pgrep -c -f 'echo [l]ate'; wc -l < kept";
    const before = await saidSoon(two, "stopped", `${count}; true`);
    one.signal("SIGCONT");
    expect(await (await late)?.json()).toMatchObject({ ok: false });
    const after = await said(ask(two, "stopped", `${count}; true`));
    expect(before?.output).toMatch(/^0\n\d+$/);
    expect(after.output).toBe(before?.output);
    expect(after.warnings).toBeUndefined();
  });

  // Late: its boundary waits for the probes of both replicas.
  it("outlives its replica: a killed one's run ends as lost, and the next run continues in the workspace, with the same placeholders of hidden credentials", async () => {
    const { one, two } = pair();
    const hidden = {
      sandboxPermission: { network: { allowlist: ["*.example.test"] } },
      credentials: [
        { name: "API_KEY", value: "sk-hidden-of-a-session-7741", hosts: ["name.example.test"], as: "bearer" },
      ],
    };
    const first = await said(ask(one, "hidden", "echo $API_KEY > kept; cat kept", hidden));
    expect(first, JSON.stringify(first)).toMatchObject({ ok: true, output: expect.stringMatching(/\S{8}/) });
    const before = daytona?.secrets().length;
    expect(await said(ask(one, "killed", "echo of the dead > kept"))).toMatchObject({ ok: true });
    expect(await said(ask(one, "abandoned", "echo kept > kept"))).toMatchObject({ ok: true });
    const end = async () => (await fetch(`${two.url}/sessions/abandoned`, { method: "DELETE" })).status;
    expect(await end()).toBe(409);
    const cut = ask(one, "killed", "echo more >> kept; sleep 60").catch(() => undefined);
    const lost = await running(two, "killed");
    // During a run, no other replica gets the session.
    expect((await ask(two, "killed", "cat kept")).status).toBe(409);
    await one.kill();
    await cut;
    expect(await saidSoon(two, "killed", "cat kept")).toMatchObject({
      ok: true,
      output: expect.stringContaining("of the dead"),
    });
    // The same in a file of the sandbox, in the environment of a new agent, and on the platform.
    const second = await said(ask(two, "hidden", "cat kept; echo $API_KEY", hidden));
    expect(second).toMatchObject({ ok: true, output: `${first.output}\n${first.output}` });
    expect(second.warnings).toBeUndefined();
    expect(daytona?.secrets().length).toBe(before);
    // A session without a next run can be ended from here, with its sandbox.
    const sandboxes = daytona?.sandboxes().length ?? 0;
    expect([await end(), await end()]).toEqual([200, 404]);
    await expect.poll(() => daytona?.sandboxes().length).toBe(sandboxes - 1);
    await expect
      .poll(async () => (await fetch(`${two.url}/runs/${lost}`)).json(), { timeout: 10_000 })
      .toMatchObject({
        state: "ended",
        result: { ok: false, failure: { code: "runner_lost", retryable: true } },
      });
    await one.start();
    const rotated = { ...hidden, credentials: [{ ...hidden.credentials[0], value: "sk-another" }] };
    const third = await said(ask(one, "hidden", "cat kept", rotated));
    expect(third.warnings).toMatchObject([{ message: expect.stringContaining("other hidden credentials") }]);
    await fetch(`${one.url}/sessions/hidden`, { method: "DELETE" });
    await expect.poll(() => daytona?.secrets().length).toBe(0);
  });

  it("waits for another replica when its own is stopped gracefully", async () => {
    const { one, two } = pair();
    expect(await said(ask(one, "drained", "echo kept > kept"))).toMatchObject({ ok: true });
    expect(await one.stop()).toBe(0);
    expect(await said(ask(two, "drained", "cat kept"))).toMatchObject({ ok: true, output: "kept" });
  });
});
