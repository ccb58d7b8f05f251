import type { IncomingMessage } from "node:http";

/** What a caller may see: every project's rows, or one project's alone. */
export type Projects = "all" | string;

/** Every caller of a server without tenants is the operator's: it sees all projects. */
export function callersProjects(_incoming: IncomingMessage): Projects {
  return "all";
}

export function isVisibleTo(projects: Projects, row: { readonly project: string | undefined }): boolean {
  return projects === "all" || row.project === projects;
}
