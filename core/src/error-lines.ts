import { constants } from "node:os";
import type { Gap, Issue } from "./contract/index.js";

/** `local · network.deny: no user namespace here (EPERM): run on docker` */
export function gapLine(gap: Gap): string {
  return lineOf(gap, capabilitiesText([gap]));
}

/** `network.deny (sandboxPermission.network allows nothing), process.contained (every boundary needs it)` */
function capabilitiesText(gaps: readonly Gap[]): string {
  const byRequirer = new Map<string | undefined, string[]>();
  for (const { capability, requiredBy } of gaps)
    byRequirer.set(requiredBy, [...(byRequirer.get(requiredBy) ?? []), capability]);
  return [...byRequirer]
    .map(([requirer, names]) => `${names.join(", ")}${requirer === undefined ? "" : ` (${requirer})`}`)
    .join(", ");
}

function lineOf({ actor, subject, reason, fix }: Gap, capabilities: string): string {
  return `${actor}${subject === undefined ? "" : ` (${subject})`} · ${capabilities}: ${reason}: ${fix}`;
}

/** A line for each gap; gaps of one actor with the same reason share a line. */
export function gapLines(gaps: readonly Gap[]): readonly string[] {
  const grouped = new Map<string, Gap[]>();
  for (const gap of gaps) {
    const key = JSON.stringify([gap.actor, gap.subject, gap.reason, gap.fix]);
    grouped.set(key, [...(grouped.get(key) ?? []), gap]);
  }
  return [...grouped.values()].flatMap((group) => {
    const [gap] = group;
    return gap === undefined ? [] : [lineOf(gap, capabilitiesText(group))];
  });
}

export function issueLine(issue: Issue): string {
  return issue.path === "" ? issue.message : `${issue.path}: ${issue.message}`;
}

export function sentence(opening: string, lines: readonly string[]): string {
  return lines.length === 0 ? `${opening}.` : `${opening}: ${lines.join("; ")}`;
}

/** The message of anything that was thrown. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** The code of a system error, such as `ENOENT`. */
export function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error && "code" in error && typeof error.code === "string")) return undefined;
  // Node.js has no name for an exhausted quota: "Unknown system error -122".
  return "errno" in error && error.errno === -constants.errno.EDQUOT ? "EDQUOT" : error.code;
}
