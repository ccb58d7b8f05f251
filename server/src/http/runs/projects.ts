import type { IncomingMessage } from "node:http";
import type { StoredRun } from "@ambit/durable/store";
import { type Caller, callerOf } from "../../tenants/caller.js";

/** The rows that a caller may see: of every project, or of one. Undefined: those of no project. */
export type Projects = "all" | string | undefined;

/** The operator sees all projects, a tenant its own, a page that of its token. */
export function callersProjects(incoming: IncomingMessage): Projects {
  const caller = callerOf(incoming);
  if (caller.kind === "page") return caller.grant.project;
  return caller.kind === "operator" ? "all" : caller.tenant.project;
}

/** Whether a caller may see this run: a page sees those of its session, or the one whose file it may read. */
export function isVisibleTo(caller: Caller, row: Pick<StoredRun, "id" | "project" | "session">): boolean {
  if (caller.kind === "operator") return true;
  if (caller.kind === "tenant") return row.project === caller.tenant.project;
  const { project, scope } = caller.grant;
  const isInScope = scope.kind === "file" ? row.id === scope.runKey : row.session === scope.sessionId;
  return isInScope && row.project === project;
}
