import type { IncomingMessage } from "node:http";
import { limits, projectOf, RequestInvalid } from "@ambit/core";
import { sendJson } from "./response/send.js";
import { type EndedResponse, type ForwardedResponse, killRequestSchema } from "./route-schemas.js";
import { runHere } from "./runs/find-run.js";
import { callersProjects } from "./runs/projects.js";
import type { Exchange, ServerContext } from "./server-context.js";

/** Bytes of the body, which holds two short names. */
const killLimit = 16 * 1024;

/** `POST /kill`: ends a session, and the run that uses it. Ending it twice isn't an error; the response says so. */
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
  const own = callersProjects(incoming);
  if (own !== "all" && (projectId ?? own) !== own) {
    const message = "is not the project of this token: leave it out";
    throw new RequestInvalid([{ path: "projectId", message }]);
  }
  const project = own === "all" ? (projectId ?? undefined) : own;
  const ended = await runner.endSession(sessionId, project);
  const message = ended ? undefined : nothingEnded(sessionId, projectId);
  if (message !== undefined) log.info({ sessionId, projectId }, "there was no session to end");
  sendJson(outgoing, 200, { ok: true, ended, message } satisfies EndedResponse);
}

/** @throws NotFound for a run of another project, as for one that isn't there; RequestInvalid */
function ownRun(context: ServerContext, incoming: IncomingMessage, id: string): string {
  const { searchParams } = new URL(incoming.url ?? "/", "http://localhost");
  const projectId = searchParams.get("projectId") || undefined;
  return runHere(context, { id, projects: callersProjects(incoming), projectId });
}

function nothingEnded(sessionId: string, projectId: string | null | undefined): string {
  const session = JSON.stringify(sessionId);
  const fix =
    "send the projectId of its runs (their projectId, or else their runContext.project.id), unless it has ended already";
  if (projectOf({ projectId: projectId ?? undefined }) === undefined)
    return `There is no session ${session} without a project: ${fix}.`;
  return `There is no session ${session} of the project ${JSON.stringify(projectId)}: ${fix}.`;
}

/** `POST /runs/:runId/cancel`: responds immediately; the run's own caller gets its result. */
export function handleCancel(context: ServerContext, { incoming, outgoing }: Exchange, runId: string): void {
  context.runner.cancel(ownRun(context, incoming, runId));
  sendJson(outgoing, 200, { ok: true, ended: true } satisfies EndedResponse);
}

/** `POST /runs/:runId/interactions/:interactionId`: the user's answer to a question of a waiting run. */
export async function handleAnswer(
  context: ServerContext,
  { incoming, outgoing }: Exchange,
  runId: string,
  interactionId: string,
): Promise<void> {
  const answer = await context.bodies.json(incoming, limits.bodyBytes);
  context.runner.answer(ownRun(context, incoming, runId), interactionId, answer);
  sendJson(outgoing, 200, { ok: true } satisfies ForwardedResponse);
}
