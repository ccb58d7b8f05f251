import type { HttpRoute } from "../http-route.js";
import { bytes, failed, jsonResponse } from "../route/responses.js";
import { streaming } from "../route/route.js";
import { sessionsProject } from "../runs/parameters.js";
import {
  exportType,
  handleDeleteSnapshot,
  handleExport,
  handleImport,
  handleSnapshot,
  handleSnapshots,
  handleTakeSnapshot,
} from "./handlers.js";

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
