import { constants, type FileHandle, open } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { ApiError } from "../http/api-error.js";

const code = (error: unknown) => (error instanceof Error && "code" in error ? error.code : undefined);

/** Milliseconds that a command may take to open its input. */
const openLimitMs = 2_000;

/**
 * Writes to a command's input pipe, waiting while it is full. Never blocks a thread: a command that doesn't read
 * would block it forever. `finished` throws if the command has ended.
 */
export async function writeInput(pipe: string, data: Buffer, finished: () => Promise<void>): Promise<void> {
  const file = await openInput(pipe, finished);
  try {
    let rest = data;
    while (rest.length > 0) {
      try {
        const { bytesWritten } = await file.write(rest);
        rest = rest.subarray(bytesWritten);
      } catch (error) {
        if (code(error) !== "EAGAIN") throw new ApiError(500, `failed to write to input pipe: ${error}`);
        await finished();
        await sleep(2);
      }
    }
  } finally {
    await file.close();
  }
}

async function openInput(pipe: string, finished: () => Promise<void>): Promise<FileHandle> {
  const deadline = performance.now() + openLimitMs;
  for (;;) {
    await finished();
    try {
      return await open(pipe, constants.O_WRONLY | constants.O_NONBLOCK);
    } catch (error) {
      // The command hasn't opened it yet. If it doesn't exist yet, that is an error (`apps/daemon/pkg/session/input.go`).
      const maySucceed = code(error) === "ENXIO";
      if (!maySucceed || performance.now() > deadline)
        throw new ApiError(500, `failed to open input pipe: ${error}`);
      await sleep(5);
    }
  }
}
