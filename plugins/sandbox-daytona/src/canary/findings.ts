import { type Finding, SandboxFailed } from "@ambit/core/plugin";
import type { Claim } from "../claims.js";
import { fixFor, ServiceFailure } from "../platform/failure.js";

/** Something that wasn't seen, with what to do about it. */
export class NotProven extends Error {
  override readonly name = "NotProven";
  constructor(
    message: string,
    readonly fix: string,
  ) {
    super(message);
  }
}

export function proven(capability: Claim, how: string): Finding {
  return { capability, proven: true, how };
}

export function unproven(capability: Claim, error: unknown): Finding {
  const reason = error instanceof Error ? error.message : String(error);
  return { capability, proven: false, reason, fix: fixOf(error) };
}

function fixOf(error: unknown): string {
  if (error instanceof NotProven) return error.fix;
  const failure = error instanceof SandboxFailed ? error.cause : error;
  return failure instanceof ServiceFailure
    ? fixFor(failure)
    : "see what Daytona's dashboard says of the sandbox, or name another sandbox";
}
