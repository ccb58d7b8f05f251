import type { Sampling } from "../environment.js";

/** Whether a run's trace is exported. @param parentFlags W3C flags of the caller's span. Pure. */
export function isSampled(
  { isParentBased, root, ratio }: Sampling,
  traceId: string,
  parentFlags: number | undefined,
): boolean {
  if (isParentBased && parentFlags !== undefined) return (parentFlags & 1) === 1;
  if (root !== "traceidratio") return root === "always_on";
  return ratio === 1 || fold(traceId) < Math.floor(ratio * 0xffffffff);
}

/**
 * The four words of a trace id in one, as the SDK of OpenTelemetry for JavaScript compares it. Its own sampler would have
 * to be loaded before the first run.
 */
function fold(traceId: string): number {
  let folded = 0;
  for (let at = 0; at < 32; at += 8) folded ^= Number.parseInt(traceId.slice(at, at + 8), 16);
  return folded >>> 0;
}
