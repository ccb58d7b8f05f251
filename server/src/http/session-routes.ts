import {
  type EndedResponse,
  type ForwardedResponse,
  killRequestSchema,
  limits,
  projectOf,
  RequestInvalid,
} from "@ambit/core";
import { sendJson } from "./send.js";
import type { Exchange, ServerContext } from "./server-context.js";

/** Bytes: two short names fit many times over. */
const killLimit = 16 * 1024;

/** `POST /kill`: ends a session, and the run that uses it. Ending it twice is no error, and is said. */
export async function handleKill(
  { runner, log, bodies }: ServerContext,
  { incoming, outgoing }: Exchange,
): Promise<void> {
  const parsed = killRequestSchema.safeParse(await bodies.json(incoming, killLimit));
  if (!parsed.success) {
    throw new RequestInvalid(
      parsed.error.issues.map(({ path, message }) => ({ path: path.join("."), message })),
    );
  }
  const { sessionId, projectId } = parsed.data;
  const ended = await runner.endSession(sessionId, projectId ?? undefined);
  const message = ended ? undefined : nothingEnded(sessionId, projectId);
  if (message !== undefined) log.info({ sessionId, projectId }, "there was no session to end");
  sendJson(outgoing, 200, { ok: true, ended, message } satisfies EndedResponse);
}

function nothingEnded(sessionId: string, projectId: string | null | undefined): string {
  const session = JSON.stringify(sessionId);
  const fix =
    "send the projectId of its runs (their projectId, or else their runContext.project.id), unless it has ended already";
  if (projectOf({ projectId: projectId ?? undefined }) === undefined)
    return `There is no session ${session} without a project: ${fix}.`;
  return `There is no session ${session} of the project ${JSON.stringify(projectId)}: ${fix}.`;
}

/** `POST /runs/:runId/cancel`: answers at once; the run ends in its own result, to its own caller. */
export function handleCancel({ runner }: ServerContext, { outgoing }: Exchange, runId: string): void {
  runner.cancel(runId);
  sendJson(outgoing, 200, { ok: true, ended: true } satisfies EndedResponse);
}

/** `POST /runs/:runId/interactions/:interactionId`: the user's answer to what a run that is held open asks. */
export async function handleAnswer(
  { runner, bodies }: ServerContext,
  { incoming, outgoing }: Exchange,
  runId: string,
  interactionId: string,
): Promise<void> {
  runner.answer(runId, interactionId, await bodies.json(incoming, limits.bodyBytes));
  sendJson(outgoing, 200, { ok: true } satisfies ForwardedResponse);
}
