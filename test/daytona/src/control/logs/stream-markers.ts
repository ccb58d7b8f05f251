import type { IncomingHttpHeaders } from "node:http";
import { Transform, type TransformCallback } from "node:stream";

const versionHeader = "x-daytona-sdk-version";
const versionProtocol = "X-Daytona-SDK-Version~";
/** Older versions expect both streams merged. */
const firstWithMarkers = [0, 27, 0] as const;

/**
 * Whether a client of a log gets the markers that distinguish its streams (`apps/daemon/pkg/session/common.go`): where
 * it names a version of the SDK that supports them, or names none and requests them.
 */
export function marksStreams(headers: IncomingHttpHeaders): boolean {
  const version = versionOf(headers);
  if (version === undefined) return headers["x-daytona-split-output"] === "true";
  if (version.includes("dev")) return true;
  const numbers = /^v?(\d+)\.(\d+)\.(\d+)/.exec(version)?.slice(1).map(Number);
  // The daemon treats an unreadable version as a new one.
  if (numbers === undefined) return true;
  for (const [index, first] of firstWithMarkers.entries()) {
    const number = numbers[index] ?? 0;
    if (number !== first) return number > first;
  }
  return true;
}

/** As a header, or among the WebSocket's protocols (`apps/daemon/internal/util/version.go`). */
function versionOf(headers: IncomingHttpHeaders): string | undefined {
  const header = headers[versionHeader];
  if (typeof header === "string" && header !== "") return header;
  const protocol = headers["sec-websocket-protocol"]
    ?.split(",")
    .map((text) => text.trim())
    .find((text) => text.startsWith(versionProtocol));
  return protocol?.slice(versionProtocol.length);
}

const isMarker = (bytes: Buffer, at: number) =>
  (bytes[at] === 1 || bytes[at] === 2) && bytes[at + 1] === bytes[at] && bytes[at + 2] === bytes[at];

/** Removes the markers, no matter how the pieces are split (`apps/daemon/pkg/session/log.go`). */
export class WithoutMarkers extends Transform {
  #held = Buffer.alloc(0);

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    const bytes = Buffer.concat([this.#held, chunk]);
    const kept: Buffer[] = [];
    let start = 0;
    let at = 0;
    for (; at + 3 <= bytes.length; ) {
      if (!isMarker(bytes, at)) {
        at += 1;
        continue;
      }
      kept.push(bytes.subarray(start, at));
      at += 3;
      start = at;
    }
    kept.push(bytes.subarray(start, at));
    this.#held = bytes.subarray(at);
    done(null, Buffer.concat(kept));
  }

  override _flush(done: TransformCallback): void {
    done(null, this.#held);
  }
}
