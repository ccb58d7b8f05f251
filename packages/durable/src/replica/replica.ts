import { createHash, randomUUID } from "node:crypto";
import { hostname } from "node:os";

/** Common prefix of the ids of all processes that listen at one address of one host, one after the other. */
export function placePrefix(place: string): string {
  const name = JSON.stringify([hostname(), place]);
  return `${createHash("sha256").update(name).digest("hex").slice(0, 16)}-`;
}

export function newReplica(place: string): string {
  return `${placePrefix(place)}${randomUUID()}`;
}
