/** Whether a write failed because the pipe's reader has closed it. */
export function isClosedPipe(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EPIPE";
}
