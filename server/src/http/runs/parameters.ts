import { NotFound, RequestInvalid } from "@ambit/core";
import type { JsonObject } from "@ambit/core/contract";
import {
  deliveryStateSchema,
  interactionStateSchema,
  runOutcomeSchema,
  runStateSchema,
  tallyDimensions,
} from "@ambit/durable/store";
import { z } from "zod";
import { callerOf, callersProjects } from "../../tenants/caller.js";
import { count, countOf, countSchema, oneOf, type QueryParameter, text } from "../route/query.js";
import type { RouteCall } from "../route/route.js";
import { tokenLifetimeSchema } from "../route-schemas.js";

/** Rows of one page, at most, and by default. */
const pageSize = { max: 1_000, byDefault: 100 };

export const runState = oneOf("state", runStateSchema, "Only those.");
export const runOutcome = oneOf(
  "outcome",
  runOutcomeSchema,
  "Only those that ended so: `paused` waits for its user, `cancelled` was ended by its caller, `failed` is any other without a success.",
);
export const onlyAsking = oneOf("asking", z.enum(["true"]), "Only runs with open questions.");
export const onlyHarness = text("harness", "Only this agent's.");
export const onlySandbox = text("sandbox", "Only those in this sandbox.");
export const deliveryState = oneOf("state", deliveryStateSchema, "Only those.");
export const interactionState = oneOf("state", interactionStateSchema, "Only those.");
export const onlyRun = text("runId", "Only this run's.");
export const onlySession = text("sessionId", "Only this session's.");
/** @param pattern of its id */
const after = (what: string, pattern: string, { or = "", maxLength = 256 } = {}) =>
  text(
    "after",
    `The next page: the id of the last ${what} of the page before${or}. An unknown one is refused: begin again without it.`,
    { pattern, maxLength },
  );
/**
 * The row that a page follows. A page after one that isn't there would look like the last page.
 * @param find undefined, or a rejection with NotFound: there is none. @throws RequestInvalid
 */
export async function placeAfter<Row>(
  after: string | undefined,
  what: string,
  find: (after: string) => Promise<Row | undefined>,
): Promise<Row | undefined> {
  if (after === undefined) return undefined;
  const row = await find(after).catch((error: unknown) => {
    if (error instanceof NotFound) return undefined;
    throw error;
  });
  if (row !== undefined) return row;
  const message = `names no stored ${what}: it was deleted meanwhile, so begin again without it`;
  throw new RequestInvalid([{ path: "after", message }]);
}

export const afterRun = after("run", "^(.*/)?[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$", {
  or: ", or `projectId/runId`, for the operator of several projects",
  maxLength: 1_024,
});
export const afterMessage = after("message", "^msg_[A-Za-z0-9-]+$");
export const afterQuestion = after("question", "^ask_[A-Za-z0-9_-]+$");
export const afterRecord = count(
  "after",
  "The number of records that the reader already has. More than an ended run has are refused: begin again without it. Default: 0.",
  0,
);
/** A day of UTC. */
const date = (name: string, description: string): QueryParameter<string | undefined> => ({
  name,
  description,
  schema: { type: "string", format: "date" },
  read: (given) => {
    if (given === null) return undefined;
    if (z.iso.date().safeParse(given).success) return given;
    throw new RequestInvalid([{ path: name, message: "must be a day, such as 2026-11-29" }]);
  },
});
export const firstDay = date("from", "The first day (UTC). Default: 29 days before `to`.");
export const lastDay = date(
  "to",
  "The last day (UTC), which is included; at most 400 days with it. Default: today.",
);
export const groupedBy = oneOf("by", z.enum(tallyDimensions), "What the groups are. Default: `day`.");

export const onlyProject = text("projectId", "Only this project's; empty: those of no project.");
/** The project in the query of a route that names one run. */
export const runsProject = text(
  "projectId",
  "For the operator, where several projects have a run of this id.",
);
export const sessionsProject = text("projectId", "The project of its runs.");

/** The lifetime of the URLs in a list of files. */
export const urlTtl: QueryParameter<number | undefined> = {
  name: "urlTtlMs",
  description:
    "Each file has a `url` then, below `server.publicUrl` of the configuration or relative to the server, which needs no other token and expires after so many milliseconds: 1,000 to 86,400,000. Default: none has one.",
  schema: { type: "integer", minimum: 1_000, maximum: 86_400_000 },
  read: (given) => {
    if (given === null) return undefined;
    const parsed = tokenLifetimeSchema.safeParse(countOf("urlTtlMs", given, 0));
    if (parsed.success) return parsed.data;
    throw new RequestInvalid([{ path: "urlTtlMs", message: "must be 1,000 to 86,400,000 milliseconds" }]);
  },
};

/** The session in a query; a page's own without one. @throws RequestInvalid for another one of a page */
export function sessionFilter({ query, exchange }: Pick<RouteCall, "query" | "exchange">): {
  session?: string | undefined;
} {
  const caller = callerOf(exchange.incoming);
  const named = query.read(onlySession);
  if (caller.kind !== "page" || caller.grant.scope.kind !== "session") return { session: named };
  const { sessionId } = caller.grant.scope;
  if (named === undefined || named === sessionId) return { session: sessionId };
  throw new RequestInvalid([
    { path: "sessionId", message: "is not the session of this token: leave it out" },
  ]);
}

export const limit: QueryParameter<number> = {
  name: "limit",
  description: "The size of a page: 1 to 1,000. Default: 100.",
  schema: { ...countSchema, minimum: 1, maximum: pageSize.max },
  read: (given) => {
    const size = countOf("limit", given ?? undefined, pageSize.byDefault);
    if (size >= 1 && size <= pageSize.max) return size;
    throw new RequestInvalid([{ path: "limit", message: `must be 1 to ${pageSize.max}` }]);
  },
};

export const lastEventId: JsonObject = {
  name: "Last-Event-ID",
  in: "header",
  description:
    "As `after`; a browser's EventSource sends it automatically; it takes precedence over `after`.",
  schema: countSchema,
};

/** The projects whose rows a request asks for. @throws RequestInvalid for one that its caller may not see */
export function projectFilter({ query, exchange }: Pick<RouteCall, "query" | "exchange">): {
  project?: string | null;
} {
  const projects = callersProjects(exchange.incoming);
  const named = query.read(onlyProject);
  if (projects === "all") return named === undefined ? {} : { project: named || null };
  if (named === undefined || named === "" || named === projects) return { project: projects ?? null };
  const message = "is not the project of this token: leave it out, or send the token of that project";
  throw new RequestInvalid([{ path: "projectId", message }]);
}
