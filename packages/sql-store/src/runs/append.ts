import { type EventGroup, type RunHead, statesBefore, type Written } from "@ambit/durable/store";
import type { Database, Statement } from "../database.js";
import { asInteger, asText, clock, list, prepared, sql, statement } from "../query.js";
import { headOf } from "../rows.js";
import { addDelivery } from "../shared/deliveries.js";

/** The row of a run that only its owner may change. */
export const owned = (id: string, fence: number) =>
  sql`id = ${id} AND fence = ${fence} AND state = 'running'`;

const advance = prepared<"runId" | "fence" | "last" | "before" | "size">(
  (value) => sql`UPDATE ambit_runs SET events = ${value("last")}, size = size + ${value("size")}
    WHERE id = ${value("runId")} AND fence = ${value("fence")} AND state = 'running' AND events = ${value("before")}
    RETURNING id`,
);

/** The last event is this one only after that update, or after an earlier one whose response was lost. */
const addChunk = prepared<"runId" | "fence" | "last" | "first" | "text">(
  (value) => sql`INSERT INTO ambit_chunks (run_id, first_event, last_event, body)
    SELECT id, CAST(${value("first")} AS BIGINT), events, CAST(${value("text")} AS TEXT) FROM ambit_runs
    WHERE id = ${value("runId")} AND fence = ${value("fence")} AND state = 'running' AND events = ${value("last")}
    ON CONFLICT (run_id, first_event) DO NOTHING RETURNING run_id`,
);

/** Adds a group of events to its run's log. */
export async function appendGroup(database: Database, group: EventGroup): Promise<Written> {
  const { runId, fence, first, count, text, dropped } = group;
  const last = first + count - 1;
  const others = [...questionsOf(database, group), ...(dropped === undefined ? [] : [drop(group, dropped)])];
  if (others.length === 0 && database.append !== undefined) {
    const written = await database.append({ runId, fence, first, last, text });
    if (written) return "written";
  }
  const rows = await database.run([
    advance({ runId, fence, last, before: first - 1, size: text.length - (dropped?.characters ?? 0) }),
    addChunk({ runId, fence, last, first, text }),
    ...others,
    selectHead({ id: runId }),
  ]);
  if (rows[1]?.length === 1) return "written";
  const head = rows.at(-1)?.[0];
  return head !== undefined && isWritten(headOf(head), fence, last) ? "written" : "fenced";
}

function drop({ runId, fence }: EventGroup, { before }: NonNullable<EventGroup["dropped"]>): Statement {
  return statement(
    sql`DELETE FROM ambit_chunks WHERE run_id = ${runId} AND last_event < ${asInteger(before)}
    AND EXISTS (SELECT 1 FROM ambit_runs WHERE ${owned(runId, fence)})`,
  );
}

/** What these events ask, and whom they are sent to. */
function questionsOf(
  database: Database,
  { runId, fence, asked = [], withdrawn = [], deliveries = [] }: EventGroup,
): readonly Statement[] {
  const own = owned(runId, fence);
  return [
    ...asked.map(({ id, kind, payload }) =>
      statement(
        sql`INSERT INTO ambit_interactions (id, run_id, project, session, kind, payload, state, created_at)
        SELECT ${asText(id)}, id, project, session, ${asText(kind)}, ${asText(payload)}, 'open', ${clock(database)}
        FROM ambit_runs WHERE ${own} ON CONFLICT (id) DO NOTHING`,
      ),
    ),
    ...withdrawn.map((id) =>
      statement(
        sql`UPDATE ambit_interactions SET state = 'withdrawn' WHERE id = ${id} AND run_id = ${runId}
        AND state IN ${list(statesBefore("withdraw"))} AND EXISTS (SELECT 1 FROM ambit_runs WHERE ${own})`,
      ),
    ),
    ...deliveries.map((one) => addDelivery(database, one, own)),
  ];
}

/** Runs that aren't being deleted. */
export const isVisible = sql`state <> 'deleted'`;

/** Where a run's log is. */
export const selectHead = prepared<"id">(
  (value) => sql`SELECT id, state, fence, events FROM ambit_runs WHERE id = ${value("id")} AND ${isVisible}`,
  "head",
);

function isWritten(head: RunHead, fence: number, last: number): boolean {
  return head.fence === fence && head.state === "running" && head.events >= last;
}
