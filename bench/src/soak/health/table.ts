import { machineDescription } from "../../machine/description.js";
import type { Health, Phase } from "./under-attack.js";

const goalMs = 100;

const round = (value: number) => (Number.isFinite(value) ? Math.round(value).toLocaleString("en") : "–");

const columns = [
  "attack",
  "health listener p50, p99, max",
  "floor p50, p99, max",
  "main port, new connection p50, p99, max",
  "kept connection p50, p99, max",
  "failed (floor, main, kept)",
  "one turn, CPU: p99, max",
  "loop delay p99, max",
  "waited for a processor",
  "RSS",
  "honest runs",
];

/** A Markdown table of milliseconds, a row for each attack. */
export function healthTable(phases: readonly Phase[]): string {
  const lines = [
    `${machineDescription()}. Milliseconds.`,
    "",
    `| ${columns.join(" | ")} |`,
    `|${columns.map(() => "---|").join("")}`,
    ...phases.map(rowOf),
    "",
  ];
  return lines.join("\n");
}

export function rowOf(phase: Phase): string {
  const { name, idle, health, mainPort, kept, floor, loop, rssMib, honest } = phase;
  const spread = ({ p50, p99, max }: Health) => `${round(p50)}, ${round(p99)}, ${round(max)}`;
  const cells = [
    idle.length === 0 ? name : `${name} (did nothing: ${idle.join(", ")})`,
    `${spread(health)}${isMet(health) ? "" : " ✗"}`,
    spread(floor),
    spread(mainPort),
    spread(kept),
    `${health.failed} (${floor.failed}, ${mainPort.failed}, ${kept.failed})`,
    `${round(loop.cpu.p99)}, ${round(loop.cpu.max)}`,
    `${round(loop.delay.p99)}, ${round(loop.delay.max)}`,
    `${round(100 * loop.waitedPart)} %`,
    `${round(rssMib)} MiB`,
    `${honest.ok} ok, ${honest.refused} refused, ${honest.failed} failed`,
  ];
  return `| ${cells.join(" | ")} |`;
}

/** 99 of 100 requests were answered in time; one that failed wasn't. */
export function isMet({ p99, answered, failed }: Health): boolean {
  return p99 <= goalMs && failed <= (answered + failed) / 100;
}
