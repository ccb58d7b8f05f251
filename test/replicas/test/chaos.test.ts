import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "@ambit/backend-kit";
import { postgresIsMissing, startPostgres } from "@ambit/test-postgres";
import { expect, it } from "vitest";
import { z } from "zod";
import { readAll, submit } from "./callers.js";
import { Replica } from "./cluster.js";

/** The number of runs, and of steps of each. All of them with AMBIT_SOAK. */
const { runs, steps } =
  process.env.AMBIT_SOAK === undefined ? { runs: 24, steps: 60 } : { runs: 200, steps: 150 };
/** Longer than the lease of replica.config.mjs. */
const stoppedMs = 4_000;

const infoSchema = z.object({
  result: z.object({ ok: z.boolean(), failure: z.object({ code: z.string() }).optional() }),
});

it("three replicas neither lose nor duplicate events that a reader received, despite all failures", {
  timeout: 180_000,
}, async (context) => {
  const missing = postgresIsMissing();
  if (missing !== undefined) context.skip(`host: ${missing}`);
  await using resources = new AsyncDisposableStack();
  const postgres = await startPostgres();
  resources.defer(() => postgres.stop());
  const environment = { AMBIT_POSTGRES_URL: postgres.url };
  const replicas: Replica[] = [];
  for (let index = 0; index < 3; index += 1) {
    const replica = new Replica(`http://127.0.0.1:${await freePort()}`, environment, index === 2);
    resources.defer(() => replica.kill());
    replicas.push(replica);
  }
  await Promise.all(replicas.map((replica) => replica.start()));
  const [killed, stopped] = replicas;
  let turn = 0;
  const any = () => replicas[turn++ % replicas.length]?.url ?? "";

  const ids = Array.from({ length: runs }, (_, index) => `run-${index}`);
  const chaos = (async () => {
    await sleep(1_000);
    await killed?.kill();
    await sleep(300);
    await killed?.start();
    await sleep(500);
    stopped?.signal("SIGSTOP");
    await sleep(stoppedMs / 2);
    // Events that a replica sent before they were stored would be lost with it here.
    await postgres.restart(async () => {
      await sleep(300);
      await killed?.kill();
    });
    await killed?.start();
    await sleep(stoppedMs / 2);
    stopped?.signal("SIGCONT");
  })();
  const seen = await Promise.all(
    ids.map(async (id, index) => {
      await sleep(index * (4_000 / runs));
      await submit(any, id, steps);
      return { id, readers: await Promise.all([readAll(any, id, 1_000), readAll(any, id, 2 * stoppedMs)]) };
    }),
  );
  await chaos;

  const outcomes: Record<string, number> = {};
  for (const { id, readers } of seen) {
    const log = (await (await fetch(`${any()}/runs/${id}/events`)).text()).trim().split("\n");
    // No event that a reader received is missing from the log, or is in it twice.
    for (const lines of readers) expect(lines).toEqual(log);
    expect(log.filter((line) => line.startsWith('{"kind":"result"'))).toHaveLength(1);
    const said = log.flatMap((line) => /"step (\d+)"/.exec(line)?.[1] ?? []).map(Number);
    expect(said).toEqual(said.map((_, index) => index + 1));
    const info = infoSchema.parse(await (await fetch(`${any()}/runs/${id}`)).json());
    const outcome = info.result?.failure?.code ?? "ok";
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    // A replica that lives, but is too slow for its lease while the store is away, ends its run itself: docs/scaling.md.
    expect(["ok", "runner_lost", "store_failed"]).toContain(outcome);
    if (outcome === "ok") expect(said).toHaveLength(steps);
  }
  const open = await Promise.all(
    ["running", "queued"].map(async (state) => (await fetch(`${any()}/runs?state=${state}`)).json()),
  );
  expect(open).toEqual([{ runs: [] }, { runs: [] }]);
  // The chaos reached some of them, and only some.
  expect(outcomes.runner_lost).toBeGreaterThan(0);
  expect(outcomes.ok).toBeGreaterThan(0);
  process.stderr.write(`chaos: ${JSON.stringify({ runs, ...outcomes })}\n`);
  expect(await Promise.all(replicas.map((replica) => replica.stop()))).toEqual([0, 0, 0]);
});
