import { bytes, failed, jsonResponse } from "../route/responses.js";
import { type HttpRoute, streaming } from "../route/route.js";
import { sessionsProject } from "../runs/parameters.js";
import { folderPath, handleSessionFile, handleSessionFiles } from "./workspace.js";

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
