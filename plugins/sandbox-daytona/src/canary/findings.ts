import { SandboxFailed } from "@ambit/core/plugin";
import { fixFor, ServiceFailure } from "../platform/failure.js";

/** What a deployer does about what went wrong with a canary. */
export function fixOf(error: unknown): string {
  const failure = error instanceof SandboxFailed ? error.cause : error;
  return failure instanceof ServiceFailure
    ? fixFor(failure)
    : "see what Daytona's dashboard says of the sandbox, or name another sandbox";
}
