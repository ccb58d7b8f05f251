import { constants } from "node:os";
import type { Gap, Issue } from "./contract/index.js";

/** `local · network.deny: no user namespace here (EPERM): run on docker` */
export function gapLine(gap: Gap): string {
  return lineOf(gap, gap.capability);
}

function lineOf({ actor, subject, reason, fix }: Gap, capabilities: string): string {
  return `${actor}${subject === undefined ? "" : ` (${subject})`} · ${capabilities}: ${reason}: ${fix}`;
}

/** A line for each gap; gaps of one actor with the same reason share a line. */
export function gapLines(gaps: readonly Gap[]): readonly string[] {
  const grouped = new Map<string, { readonly gap: Gap; readonly capabilities: string[] }>();
  for (const gap of gaps) {
    const { capability, ...rest } = gap;
    const key = JSON.stringify([rest.actor, rest.subject, rest.reason, rest.fix]);
    const group = grouped.get(key);
    if (group === undefined) grouped.set(key, { gap, capabilities: [capability] });
    else group.capabilities.push(capability);
  }
  return [...grouped.values()].map(({ gap, capabilities }) => {
    return lineOf(gap, capabilities.join(", "));
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
