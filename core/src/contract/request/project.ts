import { isJsonObject } from "../values/json.js";
import type { RunRequest } from "./request.js";

/**
 * The project that a request belongs to: `projectId`, else `runContext.project.id`. Undefined when neither is a
 * string with a character other than white space.
 *
 * It separates sessions: runs of two projects never share one, even with the same `sessionId`.
 */
export function projectOf({
  projectId,
  runContext,
}: Pick<RunRequest, "projectId" | "runContext">): string | undefined {
  const project = runContext?.project;
  const fromContext = isJsonObject(project) ? project.id : undefined;
  return [projectId, fromContext].find(isName);
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "";
}
