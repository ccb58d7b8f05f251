/**
 * A process that attacks a server until it is asked to stop: `main.js NAME TARGET`, where TARGET is JSON. It exchanges
 * messages with the soak: the tally, half a second apart and at the end.
 */
import type { AttackTarget, Tally } from "./attack.js";
import { attacks } from "./index.js";

const [name = "", given = "{}"] = process.argv.slice(2);
const attack = attacks[name];
if (attack === undefined) throw new Error(`there is no attack '${name}'`);
const target: AttackTarget = JSON.parse(given);
const tally: Tally = {};
const over = new AbortController();
const report = () => process.send?.(tally);
const reporting = setInterval(report, 500);
process.once("SIGTERM", () => over.abort());
process.once("disconnect", () => process.exit());
await attack.run(target, tally, over.signal);
clearInterval(reporting);
report();
process.exit();
