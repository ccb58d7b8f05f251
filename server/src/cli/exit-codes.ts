import type { Failure } from "@ambit/core";

/** Exit codes of `ambit`; documented in the README. */
export const exitCodes = {
  ok: 0,
  /** The run began and failed: agent, model, sandbox, time limit. */
  runFailed: 1,
  /** Invalid command line, configuration or environment. */
  usage: 2,
  /** The boundary can't be guaranteed; the result lists every gap. */
  boundaryRefused: 3,
  /** The request can't be used; the result lists every issue. */
  requestInvalid: 4,
  /** A run by hand asked something, and there was no terminal to answer at. */
  paused: 5,
  /** What read the output closed its pipe, as after SIGPIPE. */
  outputClosed: 141,
  /** Ctrl-C. */
  interrupted: 130,
  /** SIGTERM. */
  terminated: 143,
} as const;

export function exitCodeOf(failure: Failure | undefined): number {
  if (failure === undefined) return exitCodes.ok;
  if (failure.code === "boundary_refused") return exitCodes.boundaryRefused;
  return failure.code === "request_invalid" ? exitCodes.requestInvalid : exitCodes.runFailed;
}

/** Whether a write failed because the pipe's reader has closed it. */
export function isClosedPipe(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EPIPE";
}
