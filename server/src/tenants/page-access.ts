import type { PageGrant, PageRight } from "./page-grant.js";

/** What a route needs of a page's token. `file`: the run's file that the token names, or the right to read. */
export type PageNeed = PageRight | "file";

/**
 * Every route that a page may call, by its `operationId`, and what it needs. A route that isn't here is closed to pages.
 * Each of them shows and takes only what belongs to the token's session.
 */
export const pageNeeds: ReadonlyMap<string, PageNeed> = new Map([
  ["run", "run"],
  ["stream", "run"],
  ["cancel", "run"],
  ["sendMessage", "run"],
  ["answer", "answer"],
  ["interactions", "read"],
  ["runs", "read"],
  ["runInfo", "read"],
  ["events", "read"],
  ["outputFiles", "read"],
  ["outputFile", "file"],
  ["patch", "read"],
  ["bundle", "read"],
  ["archive", "read"],
  ["sessionRun", "read"],
]);

/** A route, as far as it matters to a page. */
export interface PageRoute {
  readonly operation: { readonly operationId: string };
  /** Whether it only calls other routes, as its caller. */
  readonly isDoor?: boolean;
}

/**
 * Why a page may not call this route; undefined if it may. Pure.
 * @param path gives a parameter of the route's path; empty where it has none of this name.
 */
export function whyNotForPage(
  { scope }: Pick<PageGrant, "scope">,
  { operation, isDoor = false }: PageRoute,
  path: (name: string) => string,
): string | undefined {
  const need = pageNeeds.get(operation.operationId);
  if (scope.kind === "file") {
    if (need === "file" && path("path") === scope.path) return undefined;
    return "This token is for one file of a run, at the URL that it came with.";
  }
  const may = `it may ${scope.may.join(", ")} in the session ${JSON.stringify(scope.sessionId)}, and nothing else`;
  const right = need === "file" ? "read" : need;
  // What a door does for a page, the routes that it calls decide.
  if (right === undefined && !isDoor) return `A page's token doesn't open this route: ${may}.`;
  if (right !== undefined && !scope.may.includes(right)) return `This page's token lacks "${right}": ${may}.`;
  const session = path("sessionId");
  if (session !== "" && session !== scope.sessionId)
    return `This page's token is of another session: ${may}.`;
  return undefined;
}
