import { parseArgs } from "node:util";
import { linux } from "../../needs.js";
import { healthTable, isMet, rowOf } from "./table.js";
import { healthUnderAttack } from "./under-attack.js";

const usage = `npm run soak:health -- [--seconds 10] [--only NAME] [--profile FOLDER] [--json]

Attacks one real server in every way that costs its event loop, each alone and all together, and asks for /health from
another process: on the health listener, on the port that callers use, and on connections that callers keep. A bare
server on the same machine is asked at the same time: its times are the machine's own. Ends with 1 if the health listener
missed its goal: 99 % of the answers within 100 ms.`;

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "10" },
    only: { type: "string", default: "" },
    profile: { type: "string" },
    json: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  },
});

if (values.help) process.stdout.write(`${usage}\n`);
else {
  const missing = await linux.missing();
  if (missing !== undefined) throw new Error(missing);
  const seconds = Number(values.seconds);
  if (!Number.isInteger(seconds) || seconds < 1)
    throw new Error(`--seconds must be a whole number from 1: ${values.seconds}`);
  const phases = await healthUnderAttack(
    { seconds, only: values.only, ...(values.profile === undefined ? {} : { profile: values.profile }) },
    (phase) => {
      process.stderr.write(`${rowOf(phase)}\n  ${JSON.stringify(phase.tally)}\n`);
    },
  );
  process.stdout.write(values.json ? `${JSON.stringify(phases, null, 2)}\n` : healthTable(phases));
  if (!phases.every(({ health, idle }) => isMet(health) && idle.length === 0)) process.exitCode = 1;
}
