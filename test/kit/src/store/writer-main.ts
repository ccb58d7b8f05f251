import { groupOf, newRun } from "./samples.js";
import { openStore } from "./store-rig.js";

/** Writes a run's events as fast as it can, and reports each group once it is in the log, until it is killed. */
const [module = "", config = "{}", runId = "", size = "10"] = process.argv.slice(2);
const store = await openStore({ module, config: JSON.parse(config) });
await store.renew("writer", "", 60_000);
await store.create(newRun(runId, { replica: "writer" }));
const count = Number(size);
for (let first = 1; ; first += count) {
  await store.append(groupOf(runId, first, count));
  process.stdout.write(`${first + count - 1}\n`);
}
