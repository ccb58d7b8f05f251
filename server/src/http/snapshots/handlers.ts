import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { RequestInvalid, SnapshotFailed } from "@ambit/core";
import type { SnapshotInfo } from "@ambit/core/contract";
import { json } from "../response/json-response.js";
import { leftSignal } from "../response/left-signal.js";
import { endsWithHeaders } from "../response/send.js";
import type { RouteCall } from "../route/route.js";
import type { EndedResponse, SnapshotsResponse } from "../route-schemas.js";
import { projectIn, refuseAbsent } from "../runs/callers-session.js";
import type { Exchange, ServerContext } from "../server-context.js";

type Call = RouteCall<ServerContext, Exchange>;

/** `POST /sessions/:sessionId/snapshot` */
export async function handleTakeSnapshot(call: Call): Promise<Response> {
  const { context, exchange } = call;
  const session = call.path("sessionId");
  const project = projectIn(call);
  const info = await context.runner.snapshot({ session, project }, leftSignal(exchange.outgoing));
  if (info === undefined) return await refuseAbsent(context, session, project);
  return json(201, info satisfies SnapshotInfo);
}

/** `GET /snapshots` */
export async function handleSnapshots(call: Call): Promise<Response> {
  const snapshots = [...(await call.context.files.snapshots.list(projectIn(call)))];
  return json(200, { snapshots } satisfies SnapshotsResponse);
}

/** `GET /snapshots/:snapshotId` */
export async function handleSnapshot(call: Call): Promise<Response> {
  const info = await call.context.files.snapshots.find(call.path("snapshotId"), projectIn(call));
  return json(200, info satisfies SnapshotInfo);
}

/** `DELETE /snapshots/:snapshotId` */
export async function handleDeleteSnapshot(call: Call): Promise<Response> {
  await call.context.files.snapshots.delete(call.path("snapshotId"), projectIn(call));
  return json(200, { ok: true, ended: true } satisfies EndedResponse);
}

/** `GET /snapshots/:snapshotId/archive` */
export async function handleExport(call: Call): Promise<void> {
  const id = call.path("snapshotId");
  const project = projectIn(call);
  // No run's key has a space.
  await call.context.readers.reading({ id: `snapshot ${id}`, project }, () => exported(call, id, project));
}

async function exported({ context, exchange }: Call, id: string, project: string | undefined): Promise<void> {
  const { info, content } = await context.files.snapshots.export(id, project);
  const { outgoing } = exchange;
  if (outgoing.destroyed) return;
  outgoing.writeHead(200, {
    "content-type": exportType,
    "content-disposition": `attachment; filename="${info.id}.snapshot"`,
    "cache-control": "no-store",
    "content-security-policy": "sandbox",
    "x-content-type-options": "nosniff",
  });
  if (endsWithHeaders(outgoing)) return;
  try {
    await pipeline(Readable.from(content), outgoing);
  } catch (error) {
    // The connection has ended, which is all that a reader can learn after the header.
    context.log.warn({ error }, "a snapshot was not sent to its end");
  }
}

export const exportType = "application/vnd.ambit.snapshot";

/** `POST /snapshots` */
export async function handleImport(call: Call): Promise<Response> {
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
