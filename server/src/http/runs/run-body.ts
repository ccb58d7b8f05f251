import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { isJsonObject, projectOf, RequestInvalid, runIdSchema } from "@ambit/core";
import { runRequestSchema } from "@ambit/core/contract";
import type { Caller } from "../../tenants/caller.js";

/** The run's id from a header. @throws RequestInvalid */
export function idempotencyKey({ headers }: IncomingMessage): string | undefined {
  const key = headers["idempotency-key"];
  if (key === undefined) return undefined;
  const parsed = runIdSchema.safeParse(key);
  if (parsed.success) return parsed.data;
  const messages = parsed.error.issues.map(({ message }) => ({ path: "Idempotency-Key", message }));
  throw new RequestInvalid(messages);
}

const { controlCommandId: commandSchema } = runRequestSchema.shape;

/**
 * The run's id for a `controlCommandId`, the same for every replica: a stored run of it is found again. Undefined where
 * there is none, or the request names its run.
 */
export function commandKey(body: unknown, caller: Caller): string | undefined {
  if (!isJsonObject(body) || (body.runId ?? body.run_id) != null) return undefined;
  // One that is too long to be hashed at once is refused with its request.
  const { data: command } = commandSchema.safeParse(body.controlCommandId ?? body.control_command_id);
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
  const digest = createHash("sha256").update(JSON.stringify([project ?? null, command]));
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
