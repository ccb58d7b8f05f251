import { projectOf } from "@ambit/core";
import type { Run } from "@ambit/runner";

/** The fields of a run's log lines: its id, session and project, to search by. */
export function runFields({ id, request }: Pick<Run, "id" | "request">): Readonly<Record<string, string>> {
  const { sessionId } = request;
  const projectId = projectOf(request);
  return {
    runId: id,
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(projectId === undefined ? {} : { projectId }),
  };
}
