import { machineDescription } from "../machine/description.js";
import type { SoakReport } from "./soak.js";

const round = (value: number) => Math.round(value).toLocaleString("en");

/** The figures as Markdown tables, and the number of runs of each kind. */
export function soakTable(report: SoakReport): string {
  const { before, max, after, eventLoop, healthMs, runs, surprises } = report;
  const total = Object.values(runs).reduce((sum, count) => sum + count, 0);
  const rows = [
    [
      "memory of the server (RSS)",
      `${round(before.rssMib)} MiB`,
      `${round(max.rssMib)} MiB`,
      `${round(after.rssMib)} MiB`,
    ],
    ["its descriptors", round(before.descriptors), round(max.descriptors), round(after.descriptors)],
    ["processes below it", round(before.processes), round(max.processes), round(after.processes)],
  ];
  const lines = [
    `${machineDescription()}. ${report.seconds} s, ${report.atOnce} at a time, ${total} runs and requests; ${report.boundary === undefined ? "no boundary: this host can't confine" : "each run in its jail"}.`,
    "",
    "| | before | at most | after |",
    "|---|---|---|---|",
    ...rows.map((row) => `| ${row.join(" | ")} |`),
    "",
    `Event loop: 99 % of delays below ${round(eventLoop.delay.p99)} ms, the longest ${round(eventLoop.delay.max)} ms; the longest stretch of work took ${round(eventLoop.cpu.max)} ms of CPU. \`/health\`, asked ${healthMs.count} times: half within ${round(healthMs.p50)} ms, 99 % within ${round(healthMs.p99)} ms, all within ${round(healthMs.max)} ms. Files in its data folder: ${report.files.before}, then ${report.files.after}. Not as promised: ${surprises.length}.`,
    ...surprises.slice(0, 20).map((surprise) => `- ${surprise}`),
    "",
    ...Object.entries(runs).map(([name, count]) => `${String(count).padStart(6)}  ${name}`),
    "",
  ];
  return lines.join("\n");
}
