import { nearestKey, RequestInvalid } from "@ambit/core";
import type { Projects } from "./projects.js";
import { countOf } from "./run-body.js";

const maxListed = 1_000;
const listedByDefault = 100;

/** @throws RequestInvalid for a parameter that isn't one of these: a misspelled filter would show everything. */
export function requireKnown(query: URLSearchParams, known: readonly string[]): void {
  const issues = [...new Set(query.keys())].flatMap((name) => {
    if (known.includes(name)) return [];
    const meant = nearestKey(name, known);
    const fix = meant === undefined ? `expected one of ${known.join(", ")}` : `did you mean ${meant}?`;
    return [{ path: name, message: `is unknown here: ${fix}` }];
  });
  if (issues.length > 0) throw new RequestInvalid(issues);
}

/** @throws RequestInvalid */
export function limitOf(query: URLSearchParams): number {
  const limit = countOf("limit", query.get("limit") ?? undefined, listedByDefault);
  return Math.min(Math.max(limit, 1), maxListed);
}

/** The project in a query. @throws RequestInvalid for one that its caller may not see */
export function projectFilter(query: URLSearchParams, projects: Projects): { project?: string | null } {
  const named = query.get("projectId");
  if (projects === "all") return named === null ? {} : { project: named || null };
  if (named === null || named === "" || named === projects) return { project: projects };
  const message = "is not the project of this token: leave it out, or send the token of that project";
  throw new RequestInvalid([{ path: "projectId", message }]);
}
