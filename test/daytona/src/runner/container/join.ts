import type { Duplex } from "node:stream";

/** Carries bytes both ways. Each side's end and failure is the other's. */
export function join(one: Duplex, other: Duplex): void {
  one.pipe(other);
  other.pipe(one);
  one.once("error", () => other.destroy());
  other.once("error", () => one.destroy());
  one.once("close", () => other.destroy());
  other.once("close", () => one.destroy());
}
