import type { Sandbox } from "@ambit/core/plugin";
import { listFolder, readFile } from "@ambit/workspace";
import { json, leftSignal, sendUntrusted } from "../response/send.js";
import { type QueryParameter, text } from "../route/query.js";
import type { RouteCall } from "../route/route.js";
import type { SessionFilesResponse } from "../route-schemas.js";
import { projectIn, refuseAbsent } from "../runs/find-run.js";

export const folderPath: QueryParameter<string | undefined> = text(
  "path",
  "The folder, relative to the workspace: `src/app`. Default: the workspace itself.",
  { maxLength: 4_096 },
);

/** `GET /sessions/:sessionId/files` */
export async function handleSessionFiles(call: RouteCall): Promise<Response> {
  const path = call.query.read(folderPath) ?? "";
  const { entries, complete } = await inWorkspace(call, (sandbox, signal) =>
    listFolder(sandbox, path, signal),
  );
  const files = entries.map(({ modifiedAt, ...entry }) => ({
    ...entry,
    modifiedAt: new Date(modifiedAt).toISOString(),
  }));
  return json(200, { path, entries: files, complete } satisfies SessionFilesResponse);
}

/** `GET /sessions/:sessionId/files/:path` */
export async function handleSessionFile(call: RouteCall): Promise<void> {
  const { exchange, context } = call;
  await inWorkspace(call, (sandbox, signal) =>
    readFile(
      sandbox,
      call.path("path"),
      // Without a length: a file that is cut while it is read has less.
      ({ content }) =>
        sendUntrusted(exchange, content, { "content-type": "application/octet-stream" }, context.log),
      signal,
    ),
  );
}

/** Each look is one process in the sandbox: as many at a time as a run has readers. */
async function inWorkspace<Result>(
  call: RouteCall,
  look: (sandbox: Sandbox, signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const { context, exchange } = call;
  const session = call.path("sessionId");
  const project = projectIn(call);
  const sandbox = context.runner.sandboxOf({ session, project });
  if (sandbox === undefined) return await refuseAbsent(context, session, project);
  // No run's key has a space.
  return await context.readers.reading({ id: `workspace ${project ?? ""} ${session}`, project }, () =>
    look(sandbox, leftSignal(exchange.outgoing)),
  );
}
