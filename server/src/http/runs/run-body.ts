import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { isJsonObject, projectOf, RequestInvalid, runIdSchema } from "@ambit/core";
import type { Dialect } from "@ambit/core/plugin";
import { commandIn } from "@ambit/runner";
import type { Principal } from "../../tenants/caller.js";

/** The run's id from a header. @throws RequestInvalid */
export function idempotencyKey({ headers }: IncomingMessage): string | undefined {
  const key = headers["idempotency-key"];
  if (key === undefined) return undefined;
  const parsed = runIdSchema.safeParse(key);
  if (parsed.success) return parsed.data;
  const messages = parsed.error.issues.map(({ message }) => ({ path: "Idempotency-Key", message }));
  throw new RequestInvalid(messages);
}

/**
 * The id of the run for a request's command, the same for every replica: a stored run of it is found again. Undefined where
 * the request has no command, or names its run.
 */
export function commandKey(
  body: unknown,
  caller: Principal,
  dialects: readonly Dialect[],
): string | undefined {
  if (!isJsonObject(body) || (body.runId ?? body.run_id) != null) return undefined;
  const command = commandIn(dialects, body);
  if (command === undefined) return undefined;
  const projectId = body.projectId ?? body.project_id;
  const runContext = body.runContext ?? body.run_context;
  const project =
    caller.kind === "tenant"
      ? caller.tenant.project
      : projectOf({
          ...(typeof projectId === "string" ? { projectId } : {}),
          ...(isJsonObject(runContext) ? { runContext } : {}),
        });
  const digest = createHash("sha256").update(JSON.stringify([project ?? null, command.id]));
  return `command:${digest.digest("hex")}`;
}

/** Whether the caller only wants the run's address (RFC 7240). */
export function prefersAsync({ headers }: IncomingMessage): boolean {
  const preferences = [headers.prefer ?? []].flat().flatMap((header) => header.split(/[,;]/));
  return preferences.some((preference) => preference.trim().toLowerCase() === "respond-async");
}

export function asksToDetach(body: unknown): boolean {
  return isJsonObject(body) && body.detach === true;
}
