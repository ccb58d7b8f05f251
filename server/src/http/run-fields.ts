import { projectOf } from "@ambit/core";
import type { Run } from "@ambit/runner";

/** What a log line says of a run, so that one can look for it, its session or its project. */
export function runFields({ id, request }: Pick<Run, "id" | "request">): Readonly<Record<string, string>> {
  const { sessionId } = request;
  const projectId = projectOf(request);
  return {
    runId: id,
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(projectId === undefined ? {} : { projectId }),
  };
}
