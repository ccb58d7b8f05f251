import type { Sandbox } from "@ambit/core/plugin";
import { listFolder, readFile } from "@ambit/workspace";
import { json, leftSignal, sendUntrusted } from "../response/send.js";
import { type QueryParameter, text } from "../route/query.js";
import { bytes, failed, jsonResponse } from "../route/responses.js";
import { type HttpRoute, type RouteCall, streaming } from "../route/route.js";
import type { SessionFilesResponse } from "../route-schemas.js";
import { projectIn, refuseAbsent } from "../runs/find-run.js";
import { sessionsProject } from "../runs/parameters.js";

const folderPath: QueryParameter<string | undefined> = text(
  "path",
  "The folder, relative to the workspace: `src/app`. Default: the workspace itself.",
  { maxLength: 4_096 },
);

/** `GET /sessions/:sessionId/files` */
async function handleSessionFiles(call: RouteCall): Promise<Response> {
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
async function handleSessionFile(call: RouteCall): Promise<void> {
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

/** The routes that reach into an open session. */
export const workspaceRoutes: readonly HttpRoute[] = [
  {
    method: "GET",
    path: "/sessions/{sessionId}/files",
    query: [folderPath, sessionsProject],
    refusesOthers: true,
    operation: {
      operationId: "sessionFiles",
      tag: "Files",
      summary: "One folder of an open session's workspace, as it is now",
      description:
        "For a session between its runs, and beside its run. Links are listed and not followed; what git keeps isn't listed. `complete` is false where the folder has more than 2,000 names, or some that aren't printable text.",
      responses: {
        200: jsonResponse("The folder.", "SessionFilesResponse"),
        ...failed(400, 404, 409, 502, 503),
      },
    },
    handle: handleSessionFiles,
  },
  {
    method: "GET",
    path: "/sessions/{sessionId}/files/{path*}",
    query: [sessionsProject],
    refusesOthers: true,
    operation: {
      operationId: "sessionFile",
      tag: "Files",
      summary:
        "The content of a file of an open session's workspace, as it is now; its path with its slashes",
      description:
        "At most 256 MiB, sent as an attachment without a type to guess, since an agent wrote it. A link, or a file with several names, is refused.",
      responses: {
        200: bytes("application/octet-stream", "The file."),
        ...failed(400, 404, 409, 502, 503),
      },
    },
    handle: streaming(handleSessionFile),
  },
];
