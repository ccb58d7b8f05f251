import { writeFile } from "node:fs/promises";
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { messageOf } from "@ambit/core";
import type { Goal, GoalOptions } from "./goal.js";
import { goals } from "./goals/index.js";
import { machineDescription } from "./machine/description.js";
import { dotPlot } from "./plot/dot-plot.js";
import { plotOf } from "./plot/points.js";
import { jsonReport, markdownTable, type Outcome, textTable } from "./report.js";

const usage = `npm run bench -- [--only G9,G15] [--pairs N] [--json | --markdown] [--save FILE] [--plot FILE]
                 [--peers] [--before REVISION] [--list]

Measures the goals of speed, each as the ratio of interleaved pairs in this one run, and prints what is met and
what isn't. It judges nothing else: an unmet goal is no failure, a goal that breaks while it is measured is.
--save also writes every value of every pair to a file, as JSON; --plot draws those of C1 as SVG. --peers installs
packages of others from npm into .cache/bench-peers, and measures them too; --before does the same with an earlier
revision of Ambit, which it builds in .cache/bench-before.`;

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    pairs: { type: "string" },
    json: { type: "boolean", default: false },
    markdown: { type: "boolean", default: false },
    save: { type: "string" },
    plot: { type: "string" },
    peers: { type: "boolean", default: false },
    before: { type: "string" },
    list: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  },
});

const report = (text: string) => process.stderr.write(`${text}\n`);

function chosenGoals(only: string | undefined): readonly Goal[] {
  if (only === undefined) return goals;
  return only.split(",").map((id) => {
    const found = goals.find((goal) => goal.id.toLowerCase() === id.trim().toLowerCase());
    if (found === undefined)
      throw new Error(`There is no goal '${id}': ${goals.map((goal) => goal.id).join(", ")}`);
    return found;
  });
}

function pairsOf(given: string | undefined): number | undefined {
  if (given === undefined) return undefined;
  const pairs = Number(given);
  if (!Number.isInteger(pairs) || pairs < 1)
    throw new Error(`--pairs must be a whole number from 1: ${given}`);
  return pairs;
}

async function outcomeOf(goal: Goal, options: GoalOptions): Promise<Outcome & { readonly broken?: true }> {
  for (const need of goal.needs) {
    const missing = await need.missing();
    if (missing !== undefined) return { goal, measurements: [], notMeasured: missing };
  }
  try {
    return { goal, measurements: await goal.run(options) };
  } catch (error) {
    report(error instanceof Error ? (error.stack ?? error.message) : String(error));
    const why = messageOf(error);
    return { goal, measurements: [], notMeasured: `it broke: ${why.split("\n")[0]}`, broken: true };
  }
}

async function bench(): Promise<number> {
  const chosen = chosenGoals(values.only);
  const pairs = pairsOf(values.pairs);
  const { peers, before } = values;
  const options: GoalOptions = { pairs: (usual) => pairs ?? usual, peers, before, progress: report };
  const loadBefore = loadavg()[0]?.toFixed(1);
  const outcomes: (Outcome & { readonly broken?: true })[] = [];
  for (const goal of chosen) {
    report(`${goal.id} ${goal.title}`);
    outcomes.push(await outcomeOf(goal, options));
  }
  const result = { machine: `${machineDescription()}, load ${loadBefore}`, outcomes };
  const print = values.json ? jsonReport : values.markdown ? markdownTable : textTable;
  process.stdout.write(print(result));
  if (values.plot !== undefined && outcomes.every(({ broken }) => !broken))
    await writeFile(values.plot, dotPlot(plotOf(result)));
  if (values.save !== undefined) await writeFile(values.save, jsonReport(result));
  return outcomes.some(({ broken }) => broken) ? 1 : 0;
}

if (values.help) process.stdout.write(`${usage}\n`);
else if (values.list)
  process.stdout.write(goals.map(({ id, title, goal }) => `${id}  ${title}  ${goal}\n`).join(""));
else process.exitCode = await bench();
