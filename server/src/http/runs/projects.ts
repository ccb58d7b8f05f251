import type { IncomingMessage } from "node:http";
import { callerOf } from "../../tenants/caller.js";

/** The rows that a caller may see: of every project, or of one. */
export type Projects = "all" | string;

/** The operator sees all projects, a tenant its own. */
export function callersProjects(incoming: IncomingMessage): Projects {
  const caller = callerOf(incoming);
  return caller.kind === "operator" ? "all" : caller.tenant.project;
}

export function isVisibleTo(projects: Projects, row: { readonly project: string | undefined }): boolean {
  return projects === "all" || row.project === projects;
}
