import type { IncomingMessage } from "node:http";
import { KeptPieces } from "@ambit/core/plugin";
import type { EgressLimits } from "../limits.js";

/** A git LFS batch names a hundred objects, 100 bytes each. */
const maxBytes = 256 * 1024;

/** A small body; undefined if it is larger or incomplete. */
export async function readBody(
  request: IncomingMessage,
  { bodyMs }: EgressLimits,
): Promise<Buffer | undefined> {
  const kept = new KeptPieces();
  let length = 0;
  const timer = setTimeout(() => request.destroy(), bodyMs);
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > maxBytes) return undefined;
      kept.push(chunk);
    }
    return kept.take();
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}
