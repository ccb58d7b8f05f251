import type { Duplex } from "node:stream";

/** Copies bytes in both directions. When one side ends or fails, so does the other. */
export function join(one: Duplex, other: Duplex): void {
  one.pipe(other);
  other.pipe(one);
  one.once("error", () => other.destroy());
  other.once("error", () => one.destroy());
  one.once("close", () => other.destroy());
  other.once("close", () => one.destroy());
}
