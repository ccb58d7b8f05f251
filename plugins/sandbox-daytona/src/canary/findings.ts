import { SandboxFailed } from "@ambit/core/plugin";
import { fixFor, ServiceFailure } from "../platform/failure.js";

/** How a deployer fixes a failed canary. */
export function fixOf(error: unknown): string {
  const failure = error instanceof SandboxFailed ? error.cause : error;
  return failure instanceof ServiceFailure
    ? fixFor(failure)
    : "see the sandbox in Daytona's dashboard, or name another sandbox";
}
