import { open, readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { CommandFiles } from "./session-shell.js";

/** Milliseconds between two reads at the end of the log. */
const pollMs = 20;
/** Consecutive reads without new output, about a second, before the exit code is checked. */
const looksBeforeExit = 50;

/** A command's log from its first byte, until there is no new output and an exit code. */
export async function* follow(files: CommandFiles, stop: AbortSignal): AsyncGenerator<Buffer> {
  const file = await open(files.log, "r");
  try {
    let position = 0;
    let quiet = 0;
    const buffer = Buffer.alloc(64 * 1024);
    while (!stop.aborted) {
      const { bytesRead } = await file.read(buffer, 0, buffer.length, position);
      if (bytesRead > 0) {
        position += bytesRead;
        quiet = 0;
        yield Buffer.from(buffer.subarray(0, bytesRead));
        continue;
      }
      quiet += 1;
      if (quiet >= looksBeforeExit) {
        const exitCode = await readFile(files.exitCode, "utf8").catch(() => "");
        if (exitCode.trim() !== "") return;
        quiet = 0;
      }
      await sleep(pollMs);
    }
  } finally {
    await file.close();
  }
}
