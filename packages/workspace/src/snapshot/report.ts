import { SnapshotFailed } from "@ambit/core";
import { z } from "zod";
import type { SnapshotProblem } from "../inside/snapshot/format.js";

/** Of what the program prints to stderr. */
export const maxReportCharacters = 8_000;

const countSchema = z.int().nonnegative();

/** As the program inside sends it; checked, since the sandbox's processes may have changed it. */
const reportSchema = z.discriminatedUnion("done", [
  z.strictObject({ done: z.literal(true), entries: countSchema, skipped: countSchema }),
  z.strictObject({
    done: z.literal(false),
    problem: z.enum(["too_many", "too_large", "too_deep", "unreadable", "damaged"]),
    what: z.string(),
  }),
]);

/** What the program says at its end. @throws SnapshotFailed */
export function reportIn(
  printed: string,
  code: number | null,
): { readonly entries: number; readonly skipped: number } {
  const report = reportSchema.safeParse(jsonOf(printed.trimEnd().split("\n").at(-1) ?? ""));
  if (!report.success) {
    const cause = new Error(`exit code ${code}: ${printed}`);
    throw new SnapshotFailed(
      "The sandbox's files couldn't be packed or unpacked: the program that does it needs node in the sandbox, room on its disk and its memory, and ended early.",
      { cause },
    );
  }
  if (!report.data.done) throw snapshotFailed(report.data.problem, report.data.what);
  return report.data;
}

const messages: Readonly<Record<SnapshotProblem, string>> = {
  too_many:
    "The sandbox has more files and folders than a snapshot may have: remove some, or raise workspace.maxEntries of the server's configuration",
  too_large:
    "The sandbox's files are larger than a snapshot may be: remove some, such as caches of package managers, or raise workspace.maxSnapshotMiB of the server's configuration",
  too_deep: "The sandbox has more folders within each other than a snapshot may have: remove them",
  unreadable: "The sandbox has a file that its own user can't read: make it readable, or remove it",
  damaged: "The snapshot can't be unpacked",
};

/** @param what a path inside, or another detail. */
export function snapshotFailed(problem: SnapshotProblem, what: string): SnapshotFailed {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed.
  const detail = what.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, " ").slice(0, 400);
  return new SnapshotFailed(`${messages[problem]}${detail === "" ? "" : ` (${detail})`}.`);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
