import { SnapshotError, type SnapshotReport, type SnapshotWish } from "./format.js";
import { Packing } from "./pack.js";
import { Unpacking } from "./unpack.js";

/** Called by what loads this program: see `programs.ts`. @param input the wish, as JSON. */
export function main(input: string): void {
  const wish: SnapshotWish = JSON.parse(input);
  const job = wish.action === "pack" ? new Packing(wish) : new Unpacking(wish);
  try {
    job.run();
    report({ done: true, entries: job.entries, skipped: job.skipped });
  } catch (error) {
    if (!(error instanceof SnapshotError)) throw error;
    report({ done: false, problem: error.problem, what: error.message.slice(0, 1_000) });
    process.exitCode = 1;
  }
}

function report(line: SnapshotReport): void {
  process.stderr.write(`\n${JSON.stringify(line)}\n`);
}
