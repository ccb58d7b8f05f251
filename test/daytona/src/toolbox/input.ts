import { constants, type FileHandle, open } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { ApiError } from "../http/api-error.js";

const code = (error: unknown) => (error instanceof Error && "code" in error ? error.code : undefined);

/**
 * Writes to a command's input pipe, waiting while nobody has opened it and while it is full. Never blocks a thread: a
 * command that doesn't read would block it forever. It fails at once if the pipe doesn't exist, which is so before the
 * command's start and after its end (`apps/daemon/pkg/session/input.go`).
 *
 * @param signal ends the wait.
 */
export async function writeInput(pipe: string, data: Buffer, signal: AbortSignal): Promise<void> {
  const file = await openInput(pipe, signal);
  try {
    let rest = data;
    while (rest.length > 0) {
      try {
        const { bytesWritten } = await file.write(rest);
        rest = rest.subarray(bytesWritten);
      } catch (error) {
        if (code(error) !== "EAGAIN" || signal.aborted)
          throw new ApiError(500, `failed to write to input pipe: ${error}`);
        await sleep(2);
      }
    }
  } finally {
    await file.close();
  }
}

async function openInput(pipe: string, signal: AbortSignal): Promise<FileHandle> {
  for (;;) {
    try {
      return await open(pipe, constants.O_WRONLY | constants.O_NONBLOCK);
    } catch (error) {
      // ENXIO: the command hasn't opened it yet.
      if (code(error) !== "ENXIO" || signal.aborted)
        throw new ApiError(500, `failed to open input pipe: ${error}`);
      await sleep(5);
    }
  }
}
