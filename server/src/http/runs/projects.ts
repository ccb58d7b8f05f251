import type { IncomingMessage } from "node:http";
import { callerOf } from "../caller/caller.js";

/** What a caller may see: every project's rows, or only one project's. */
export type Projects = "all" | string;

/** The operator sees all projects, a tenant its own. */
export function callersProjects(incoming: IncomingMessage): Projects {
  const caller = callerOf(incoming);
  return caller.kind === "operator" ? "all" : caller.tenant.project;
}

export function isVisibleTo(projects: Projects, row: { readonly project: string | undefined }): boolean {
  return projects === "all" || row.project === projects;
}
