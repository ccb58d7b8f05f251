import { queryOptions } from "@tanstack/react-query";
import { clientOf, type RunPlace } from "./client.js";

/** Where a session is: its id, and its project. */
export interface SessionPlace extends Pick<RunPlace, "projectId"> {
  readonly sessionId: string;
}

/** One folder of an open session's workspace. @param path empty: the workspace itself */
export const workspaceFolder = (session: SessionPlace, path: string) =>
  queryOptions({
    queryKey: ["workspace", session, "folder", path],
    queryFn: ({ signal }) =>
      clientOf(session).sessionFiles(session.sessionId, path === "" ? undefined : path, { signal }),
    staleTime: 5_000,
  });

export const openFile = (session: SessionPlace, path: string, signal?: AbortSignal): Promise<Response> =>
  clientOf(session).sessionFile(session.sessionId, path, signal === undefined ? {} : { signal });
