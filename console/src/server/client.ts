import { AmbitClient, type Schema } from "@ambit/client";
import { sessionFetch } from "./session.js";

export type ListedRun = Schema<"RunsResponse">["runs"][number];
export type RunInfo = Schema<"RunInfo">;
export type Interaction = Schema<"InteractionsResponse">["interactions"][number];
export type Receipt = Schema<"Receipt">;
export type Failure = Schema<"Failure">;
export type Actor = Schema<"PluginsResponse">["actors"][number];

/** Where a run is: its id, and its project, since ids of several projects may be the same. */
export interface RunPlace {
  readonly runId: string;
  readonly projectId?: string | undefined;
}

export const client = new AmbitClient({ url: location.origin, fetch: sessionFetch });

/** The server's API for one project. */
export function clientOf({ projectId }: Pick<RunPlace, "projectId">, send = sessionFetch): AmbitClient {
  return new AmbitClient({
    url: location.origin,
    fetch: send,
    ...(projectId === undefined ? {} : { projectId }),
  });
}
