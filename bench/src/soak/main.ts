import { parseArgs } from "node:util";
import { linux } from "../needs.js";
import { soakTable } from "./report.js";
import { soak } from "./soak.js";

const usage = `npm run soak -- [--seconds 600] [--at-once 8] [--only NAME] [--json]

Mixes hostile agents, slow readers, broken callbacks and normal runs on one real server, and reports its memory,
descriptors, processes and delays. Ends with 1 if something wasn't as promised.`;

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "600" },
    "at-once": { type: "string", default: "8" },
    only: { type: "string", default: "" },
    json: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  },
});

function positive(name: string, text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value > 0) return value;
  throw new Error(`--${name} must be a whole number from 1: ${text}`);
}

if (values.help) process.stdout.write(`${usage}\n`);
else {
  const missing = await linux.missing();
  if (missing !== undefined) throw new Error(missing);
  const report = await soak({
    seconds: positive("seconds", values.seconds),
    atOnce: positive("at-once", values["at-once"]),
    only: values.only,
  });
  process.stdout.write(values.json ? `${JSON.stringify(report, null, 2)}\n` : soakTable(report));
  if (report.surprises.length > 0) process.exitCode = 1;
}
