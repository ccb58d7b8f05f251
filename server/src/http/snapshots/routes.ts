import { RequestInvalid, SnapshotFailed } from "@ambit/core";
import type { SnapshotInfo } from "@ambit/core/contract";
import { json, leftSignal, sendUntrusted } from "../response/send.js";
import { bytes, failed, jsonResponse } from "../route/responses.js";
import { type HttpRoute, type RouteCall, streaming } from "../route/route.js";
import type { EndedResponse, SnapshotsResponse } from "../route-schemas.js";
import { projectIn, refuseAbsent } from "../runs/find-run.js";
import { sessionsProject } from "../runs/parameters.js";

const exportType = "application/vnd.ambit.snapshot";

/** The routes of sessions' snapshots. */
export const snapshotRoutes: readonly HttpRoute[] = [
  {
    method: "POST",
    path: "/sessions/{sessionId}/snapshot",
    query: [sessionsProject],
    refusesOthers: true,
    operation: {
      operationId: "takeSnapshot",
      tag: "Snapshots",
      summary: "Keeps a copy of an idle session's workspace, home and conversation",
      description:
        "A new session begins with it where a request's `fork.snapshot` names it. No run may use the session meanwhile.",
      responses: {
        201: jsonResponse("The snapshot: a request's `fork` names it.", "SnapshotInfo"),
        ...failed(400, 404, 409, 502, 503),
      },
    },
    handle: handleTakeSnapshot,
  },
  {
    method: "GET",
    path: "/snapshots",
    query: [sessionsProject],
    refusesOthers: true,
    operation: {
      operationId: "snapshots",
      tag: "Snapshots",
      summary: "The snapshots of the project, the newest first",
      description: "All of them, in one list. They are kept until they are deleted, or their time is over.",
      responses: { 200: jsonResponse("All of them.", "SnapshotsResponse"), ...failed(400, 502, 503) },
    },
    handle: handleSnapshots,
  },
  {
    method: "POST",
    path: "/snapshots",
    query: [sessionsProject],
    refusesOthers: true,
    operation: {
      operationId: "importSnapshot",
      tag: "Snapshots",
      summary: "Keeps a snapshot that was exported, here or on another server, under a new id",
      description: "The body is what `GET /snapshots/{snapshotId}/archive` gave.",
      requestBody: {
        required: true,
        content: { [exportType]: { schema: { type: "string", format: "binary" } } },
      },
      responses: {
        201: jsonResponse("The snapshot.", "SnapshotInfo"),
        ...failed(400, 408, 503),
      },
    },
    handle: handleImport,
  },
  {
    method: "GET",
    path: "/snapshots/{snapshotId}",
    query: [sessionsProject],
    refusesOthers: true,
    operation: {
      operationId: "snapshot",
      tag: "Snapshots",
      summary: "One snapshot",
      description: "When it was taken, of which session, and its size.",
      responses: { 200: jsonResponse("The snapshot.", "SnapshotInfo"), ...failed(400, 404, 502, 503) },
    },
    handle: handleSnapshot,
  },
  {
    method: "GET",
    path: "/snapshots/{snapshotId}/archive",
    query: [sessionsProject],
    refusesOthers: true,
    operation: {
      operationId: "exportSnapshot",
      tag: "Snapshots",
      summary: "A snapshot as a file, which `POST /snapshots` takes on any server",
      description: "It holds what the session's workspace, home and conversation held: treat it as a secret.",
      responses: {
        200: { ...bytes(exportType, "Its description as a line of JSON, then its archive.") },
        ...failed(400, 404, 502, 503),
      },
    },
    handle: streaming(handleExport),
  },
  {
    method: "DELETE",
    path: "/snapshots/{snapshotId}",
    query: [sessionsProject],
    refusesOthers: true,
    operation: {
      operationId: "deleteSnapshot",
      tag: "Snapshots",
      summary: "Deletes a snapshot; sessions that were forked from it stay",
      description: "A session that begins with it later is refused.",
      responses: { 200: jsonResponse("It is deleted.", "EndedResponse"), ...failed(400, 404, 502, 503) },
    },
    handle: handleDeleteSnapshot,
  },
];

/** `POST /sessions/:sessionId/snapshot` */
async function handleTakeSnapshot(call: RouteCall): Promise<Response> {
  const { context, exchange } = call;
  const session = call.path("sessionId");
  const project = projectIn(call);
  const info = await context.runner.snapshot({ session, project }, leftSignal(exchange.outgoing));
  if (info === undefined) return await refuseAbsent(context, session, project);
  return json(201, info satisfies SnapshotInfo);
}

/** `GET /snapshots` */
async function handleSnapshots(call: RouteCall): Promise<Response> {
  const snapshots = [...(await call.context.files.snapshots.list(projectIn(call)))];
  return json(200, { snapshots } satisfies SnapshotsResponse);
}

/** `GET /snapshots/:snapshotId` */
async function handleSnapshot(call: RouteCall): Promise<Response> {
  const info = await call.context.files.snapshots.find(call.path("snapshotId"), projectIn(call));
  return json(200, info satisfies SnapshotInfo);
}

/** `DELETE /snapshots/:snapshotId` */
async function handleDeleteSnapshot(call: RouteCall): Promise<Response> {
  await call.context.files.snapshots.delete(call.path("snapshotId"), projectIn(call));
  return json(200, { ok: true, ended: true } satisfies EndedResponse);
}

/** `GET /snapshots/:snapshotId/archive` */
async function handleExport(call: RouteCall): Promise<void> {
  const id = call.path("snapshotId");
  const project = projectIn(call);
  // No run's key has a space.
  await call.context.readers.reading({ id: `snapshot ${id}`, project }, () => exported(call, id, project));
}

async function exported(
  { context, exchange }: RouteCall,
  id: string,
  project: string | undefined,
): Promise<void> {
  const { info, content } = await context.files.snapshots.export(id, project);
  const headers = {
    "content-type": exportType,
    "content-disposition": `attachment; filename="${info.id}.snapshot"`,
  };
  await sendUntrusted(exchange, content, headers, context.log);
}

/** `POST /snapshots` */
async function handleImport(call: RouteCall): Promise<Response> {
  const { context, exchange } = call;
  const { incoming, outgoing } = exchange;
  const project = projectIn(call);
  try {
    const info = await context.files.snapshots.import(incoming, project);
    return json(201, info satisfies SnapshotInfo);
  } catch (error) {
    // The rest of the body isn't read, so the connection can't carry another request.
    if (!incoming.complete) outgoing.setHeader("connection", "close");
    if (!(error instanceof SnapshotFailed)) throw error;
    throw new RequestInvalid([{ path: "", message: error.message }]);
  }
}
