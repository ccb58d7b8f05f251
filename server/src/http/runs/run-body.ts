import type { IncomingMessage } from "node:http";
import { isJsonObject, RequestInvalid, runIdSchema } from "@ambit/core";

/** The run's id from a header. @throws RequestInvalid */
export function idempotencyKey({ headers }: IncomingMessage): string | undefined {
  const key = headers["idempotency-key"];
  if (key === undefined) return undefined;
  const parsed = runIdSchema.safeParse(key);
  if (parsed.success) return parsed.data;
  const messages = parsed.error.issues.map(({ message }) => ({ path: "Idempotency-Key", message }));
  throw new RequestInvalid(messages);
}

/** Whether the caller only wants the run's address (RFC 7240). */
export function prefersAsync({ headers }: IncomingMessage): boolean {
  const preferences = [headers.prefer ?? []].flat().flatMap((header) => header.split(/[,;]/));
  return preferences.some((preference) => preference.trim().toLowerCase() === "respond-async");
}

export function asksToDetach(body: unknown): boolean {
  return isJsonObject(body) && body.detach === true;
}

/** A number in a query or header. @throws RequestInvalid */
export function countOf(path: string, text: string | undefined, byDefault: number): number {
  if (text === undefined || text === "") return byDefault;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new RequestInvalid([{ path, message: "must be a whole number, 0 or more" }]);
}
