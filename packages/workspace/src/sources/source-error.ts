import { SourceFailed, type SourceFailureReason } from "@ambit/core";

/** @param index of the source in the request. */
export function sourceFailed(
  index: number,
  reason: SourceFailureReason,
  message: string,
  cause?: unknown,
): SourceFailed {
  return new SourceFailed(`workspace.sources[${index}] ${message}`, reason, { cause });
}
