import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "@ambit/backend-kit";
import { postgresIsMissing, startPostgres } from "@ambit/test-postgres";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { Replica } from "./cluster.js";
import { CuttableProxy } from "./cuttable-proxy.js";

const infoSchema = z.looseObject({
  state: z.string(),
  fence: z.number(),
  result: z.looseObject({ failure: z.looseObject({ code: z.string() }).optional() }).optional(),
});

interface Call {
  readonly headers: IncomingHttpHeaders;
  readonly at: number;
}

/** Runs are observed more often than this, in milliseconds. */
const intervalMs = 20;
/** Calls of a run's agent, more than it can make before it is ended. */
const calls = 2_000;

describe("a replica that can't renew its lease", { timeout: 90_000 }, () => {
  const missing = postgresIsMissing();
  const cleaning = new AsyncDisposableStack();
  const received: Call[] = [];
  let proxy: CuttableProxy | undefined;
  let endpoint = "";
  let replicas: readonly Replica[] = [];

  beforeAll(async () => {
    if (missing !== undefined) return;
    const platform = createServer((request, response) => {
      received.push({ headers: request.headers, at: performance.now() });
      request.resume();
      response.end("{}");
    });
    platform.listen(0, "127.0.0.1");
    await once(platform, "listening");
    cleaning.defer(() => {
      platform.closeAllConnections();
      platform.close();
    });
    const address = platform.address();
    endpoint = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/`;
    const server = await startPostgres();
    cleaning.defer(() => server.stop());
    proxy = cleaning.use(await CuttableProxy.to(`${server.folder}/.s.PGSQL.5432`));
    const urls = [`postgresql://ambit@127.0.0.1:${proxy.port}/postgres`, server.url];
    replicas = await Promise.all(
      urls.map(async (url) => {
        const own = `http://127.0.0.1:${await freePort()}`;
        const replica = new Replica(own, { AMBIT_POSTGRES_URL: url }, false, "./partition.config.mjs");
        cleaning.defer(() => replica.kill());
        return replica;
      }),
    );
    await Promise.all(replicas.map((replica) => replica.start()));
  }, 60_000);
  afterAll(() => cleaning.disposeAsync());
  beforeEach((context) => {
    if (missing !== undefined) context.skip(`host: ${missing}`);
  });

  const callsOf = (id: string) => received.filter(({ headers }) => headers["x-ambit-run-id"] === id);
  const pair = () => {
    const [owner, other] = replicas;
    if (owner === undefined || other === undefined || proxy === undefined)
      throw new Error("the replicas aren't there");
    return { owner, other, proxy };
  };

  /** Begins a run whose agent calls the platform, beside a process of its own in the jail. */
  const begin = async (replica: Replica, id: string, mark: string) => {
    const steps = Array.from({ length: calls }, () => "call act {}\nsleep 20");
    const script = [`run sleep ${mark} >/dev/null 2>&1 &`, ...steps].join("\n");
    const response = await fetch(`${replica.url}/run`, {
      method: "POST",
      headers: { "idempotency-key": id, prefer: "respond-async" },
      body: JSON.stringify({
        harness: "demo",
        sandbox: "local",
        messages: [{ role: "user", content: script }],
        toolCallback: { endpoint },
        customTools: [{ name: "act", callRef: "act" }],
        permissions: { default: "allow" },
      }),
    });
    expect([response.status, await response.json()]).toMatchObject([202, { ok: true }]);
    await expect.poll(() => callsOf(id).length, { timeout: 30_000 }).toBeGreaterThan(3);
    await expect.poll(() => processesWith(mark)).toBeGreaterThan(0);
  };
  const info = async (replica: Replica, id: string) =>
    infoSchema.parse(await (await fetch(`${replica.url}/runs/${id}`)).json());

  it("ends its runs and their jails before another replica says that they have ended", async () => {
    const { owner, other, proxy } = pair();
    const [id, mark] = [`cut-${randomUUID()}`, "98761.25"];
    await begin(owner, id, mark);
    proxy.cut();
    let ended = await info(other, id);
    let living = 0;
    while (ended.state !== "ended") {
      living = await processesWith(mark);
      ended = await info(other, id);
      await sleep(intervalMs);
    }
    const endedAt = performance.now();
    expect(ended).toMatchObject({ fence: 2, result: { failure: { code: "runner_lost", retryable: true } } });
    expect(living).toBe(0);
    // Long enough for many more calls.
    await sleep(1_000);
    const made = callsOf(id);
    expect(made.filter(({ at }) => at > endedAt - intervalMs)).toEqual([]);
    // With what a platform needs to recognise them.
    const keys = made.map(({ headers }) => headers["idempotency-key"]);
    expect(new Set(keys).size).toBe(keys.length);
    for (const { headers } of made)
      expect(headers).toMatchObject({
        "x-ambit-run-id": id,
        "x-ambit-fence": "1",
        "idempotency-key": expect.stringMatching(/^[\w-]{43}$/),
      });
    proxy.join();
    // It takes runs again.
    await expect
      .poll(async () => (await info(owner, id).catch(() => undefined))?.state, { timeout: 20_000 })
      .toBe("ended");
    await begin(owner, `again-${randomUUID()}`, "98761.5");
  });

  it("does nothing after it was stopped before it has renewed", async () => {
    const { owner, other, proxy } = pair();
    const [id, mark] = [`stopped-${randomUUID()}`, "98762.25"];
    await begin(owner, id, mark);
    owner.signal("SIGSTOP");
    await expect
      .poll(async () => (await info(other, id)).result, { timeout: 30_000 })
      .toMatchObject({ failure: { code: "runner_lost" } });
    // The agent's next call waits in the stopped server's sockets, and the database stays out of reach for now.
    const before = callsOf(id).length;
    proxy.cut();
    owner.signal("SIGCONT");
    await sleep(1_000);
    proxy.join();
    await expect.poll(() => processesWith(mark), { timeout: 20_000 }).toBe(0);
    await sleep(500);
    expect(callsOf(id)).toHaveLength(before);
  });
});

/** The number of processes of this host, its jails included, with this argument. */
async function processesWith(argument: string): Promise<number> {
  const ids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(ids.map((id) => readFile(`/proc/${id}/cmdline`, "utf8").catch(() => "")));
  return lines.filter((line) => line.split("\0").includes(argument)).length;
}
