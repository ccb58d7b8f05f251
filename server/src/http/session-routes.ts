import { projectOf, RequestInvalid } from "@ambit/core";
import { json } from "./response/json-response.js";
import { validBody } from "./route/valid-body.js";
import { type EndedResponse, killRequestSchema } from "./route-schemas.js";
import { callersProjects } from "./runs/projects.js";
import type { Exchange, ServerContext } from "./server-context.js";

/** Bytes of the body, which holds two short names. */
const killLimit = 16 * 1024;

/** `POST /kill`: ends a session, and the run that uses it. Ending it twice isn't an error; the response says so. */
export async function handleKill(
  { runner, log, bodies }: ServerContext,
  { incoming }: Exchange,
): Promise<Response> {
  const { sessionId, projectId } = validBody(killRequestSchema, await bodies.json(incoming, killLimit));
  const own = callersProjects(incoming);
  if (own !== "all" && (projectId ?? own) !== own) {
    const message = "is not the project of this token: leave it out";
    throw new RequestInvalid([{ path: "projectId", message }]);
  }
  const project = own === "all" ? (projectId ?? undefined) : own;
  const ended = await runner.endSession(sessionId, project);
  const message = ended ? undefined : nothingEnded(sessionId, projectId, own !== "all");
  if (message !== undefined) log.info({ sessionId, projectId }, "there was no session to end");
  return json(200, { ok: true, ended, message } satisfies EndedResponse);
}

function nothingEnded(sessionId: string, projectId: string | null | undefined, isTenant: boolean): string {
  const session = JSON.stringify(sessionId);
  if (isTenant) return `There is no session ${session}: it has ended already, or never began.`;
  const fix =
    "send the projectId of its runs (their projectId, or else their runContext.project.id), unless it has ended already";
  if (projectOf({ projectId: projectId ?? undefined }) === undefined)
    return `There is no session ${session} without a project: ${fix}.`;
  return `There is no session ${session} of the project ${JSON.stringify(projectId)}: ${fix}.`;
}
